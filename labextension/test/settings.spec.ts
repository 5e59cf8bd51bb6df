/** The settings, and what they do in the dialog. */
import type { Contents } from '@jupyterlab/services';
import { readFileSync } from 'fs';
import * as path from 'path';

import type { IDialogApi } from '../src/jobs/client';
import type { Submission } from '../src/jobs/job';
import { resultsPath, withDefaults } from '../src/dialog/defaultChoices';
import {
  DEFAULTS,
  RegistryPreferences,
  SETTINGS_ID
} from '../src/settings/preferences';
import type { INotebookSource } from '../src/source';
import { withFolder, withoutFolder } from '../src/dialog/resultsFolder';
import { job, preflight } from './fixtures';

type Schema = {
  properties: Record<
    string,
    { title: string; description: string; default: unknown }
  >;
};

describe('the settings', () => {
  const schema = JSON.parse(
    readFileSync(path.join(__dirname, '../schema/submit.json'), 'utf8')
  ) as Schema;

  it('have the defaults of the schema, and each has help', () => {
    const defaults = Object.entries(schema.properties).map(
      ([name, property]) => [name, property.default]
    );
    expect(Object.fromEntries(defaults)).toEqual(DEFAULTS);
    for (const { title, description } of Object.values(schema.properties)) {
      expect(title).toBeTruthy();
      expect(description).toMatch(/\.$/);
    }
  });

  it('follow the registry, and are changed in it', async () => {
    let onChanged = (_: { composite: object }): void => undefined;
    const saved: unknown[] = [];
    const settings = {
      composite: { flavor: 'gpu-1' },
      changed: { connect: (slot: typeof onChanged) => (onChanged = slot) },
      set: (...args: unknown[]) => Promise.resolve(saved.push(args))
    };
    const load = (id: string) => {
      expect(id).toBe(SETTINGS_ID);
      return Promise.resolve(settings);
    };
    const preferences = new RegistryPreferences({ load } as never);
    expect(preferences.current).toEqual(DEFAULTS);
    await preferences.ready;
    expect(preferences.current).toEqual({ ...DEFAULTS, flavor: 'gpu-1' });
    let changes = 0;
    preferences.changed.connect(() => (changes += 1));
    onChanged({ composite: { flavor: 'small' } });
    expect(preferences.current.flavor).toBe('small');
    expect(changes).toBe(1);
    await preferences.set('tellMissed', false);
    expect(saved).toEqual([['tellMissed', false]]);
  });

  it('are the defaults where they cannot be read', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const load = () => Promise.reject(new Error('no such schema'));
    const preferences = new RegistryPreferences({ load } as never);
    await preferences.ready;
    expect(preferences.current).toEqual(DEFAULTS);
    await preferences.set('confirmDelete', false);
    expect(preferences.current.confirmDelete).toBe(false);
    warn.mockRestore();
  });
});

describe('defaults of the dialog', () => {
  const set = {
    ...DEFAULTS,
    flavor: 'gpu-1',
    device: 't4',
    resultsFolder: 'results/{notebook}/'
  };

  it('are for notebooks without jobs; the folder for all', () => {
    const output = 'lab/results/a/';
    expect(withDefaults({}, 'lab/a.ipynb', set).choices).toEqual({
      flavor: 'gpu-1',
      device: 't4',
      output
    });
    const choices = { flavor: 'small', device: 'cpu' };
    expect(withDefaults({ choices }, 'lab/a.ipynb', set).choices).toEqual({
      ...choices,
      output
    });
    const elsewhere = { choices: { ...choices, output: 'b.ipynb' } };
    expect(withDefaults(elsewhere, 'lab/a.ipynb', set)).toEqual(elsewhere);
  });

  it.each([
    ['', 'a.ipynb', ''],
    ['  ', 'a.ipynb', ''],
    ['results', 'a.ipynb', 'results/'],
    ['results/{notebook}', 'lab/$&.ipynb', 'lab/results/$&/'],
    ['/runs/{notebook}/', 'lab/a.ipynb', 'runs/a/'],
    ['../out', 'lab/a.ipynb', 'out/'],
    ['.', 'a.ipynb', ''],
    ['/', 'lab/a.ipynb', '']
  ])('a folder %p of %p is %p', (pattern, notebook, expected) => {
    expect(resultsPath(pattern, notebook)).toBe(expected);
  });
});

describe('the folder of results', () => {
  it('is made before it is needed, and not before', async () => {
    const there = new Set(['lab']);
    const contents = {
      get: (folder: string) =>
        there.has(folder) ? Promise.resolve({}) : Promise.reject(new Error()),
      save: (folder: string) => Promise.resolve(there.add(folder))
    } as unknown as Contents.IManager;
    const sent: unknown[] = [];
    const source: INotebookSource = {
      path: 'lab/a.ipynb',
      note: null,
      initialChoices: {},
      takesFiles: true,
      toSubmission: () => ({ notebook: 'lab/a.ipynb' }),
      submit: choices => {
        sent.push(choices.output);
        return Promise.resolve(job());
      }
    };
    const wrapped = withFolder(source, 'lab/results/a/', contents);
    expect(wrapped.toSubmission()).toEqual({ notebook: 'lab/a.ipynb' });
    await wrapped.submit({ output: 'other/' }, 'key');
    expect([...there]).toEqual(['lab']);
    await wrapped.submit({ output: 'lab/results/a' }, 'key');
    expect([...there]).toEqual(['lab', 'lab/results', 'lab/results/a']);
    expect(sent).toEqual(['other/', 'lab/results/a/']);
  });

  it('is nothing to ask the server about', async () => {
    const asked: Submission[] = [];
    const api = {
      checkSubmission: (submission: Submission) => {
        asked.push(submission);
        return Promise.resolve(preflight());
      }
    } as unknown as IDialogApi;
    const { checkSubmission } = withoutFolder(api, 'results/a/');
    await checkSubmission({ notebook: 'a.ipynb', output: 'results/a/' });
    await checkSubmission({ notebook: 'a.ipynb', output: 'b.ipynb' });
    expect(asked).toEqual([
      { notebook: 'a.ipynb' },
      { notebook: 'a.ipynb', output: 'b.ipynb' }
    ]);
  });
});
