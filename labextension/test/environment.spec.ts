/** The environment variables of the dialog, and texts of the server in another language. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { readFileSync } from 'fs';
import * as path from 'path';

import { EnvironmentForm } from '../src/dialog/environment';
import { ChoiceMemory } from '../src/dialog/memory';
import { catalogText } from '../src/ui/catalogText';
import { explainCode, explainUnavailable } from '../src/ui/serverText';
import { job, TRANS } from './fixtures';

describe('EnvironmentForm', () => {
  it('sends what has a value, and knows what has none', () => {
    const form = new EnvironmentForm({ A: '' }, ['A', 'HF_TOKEN']);
    expect(form.values).toEqual({ A: '' });
    expect(form.unsetNames).toEqual(['HF_TOKEN']);
    const [token] = form.variables;
    form.setValue(token!.id, 'secret');
    expect(form.values).toEqual({ A: '', HF_TOKEN: 'secret' });
    expect(form.unsetNames).toEqual([]);
    form.remove(token!.id);
    expect(form.names).toEqual(['A']);
  });

  it('takes NAME=value as a shell has it', () => {
    const form = new EnvironmentForm();
    form.add();
    const { id } = form.variables[0]!;
    form.setName(id, 'export KEY=a=b');
    expect(form.values).toEqual({ KEY: 'a=b' });
    form.setName(id, 'OTHER=');
    expect(form.values).toEqual({ OTHER: 'a=b' });
  });

  it('finds names that are missing or there twice', () => {
    const form = new EnvironmentForm({ A: '1' });
    form.add();
    expect(form.hasErrors).toBe(false);
    const added = form.variables[1]!;
    form.setValue(added.id, 'x');
    expect(form.faultOf(added)).toBe('missing');
    form.setName(added.id, ' A');
    expect(form.faultOf(added)).toBe('twice');
    form.setName(added.id, 'B');
    expect(form.hasErrors).toBe(false);
  });
});

it('remembers names of variables, and no value', () => {
  const jobs = {
    all: [],
    getNewestOf: () => undefined,
    findNewestOf: () => Promise.resolve(null),
    loadGroup: () => Promise.resolve()
  };
  const memory = new ChoiceMemory(jobs, 'scope');
  memory.save('a.ipynb', job(), { variables: ['HF_TOKEN'] });
  const { now } = new ChoiceMemory(jobs, 'scope').load('a.ipynb');
  expect(now).toEqual({ declined: [], variables: ['HF_TOKEN'] });
  memory.save('a.ipynb', job(), {});
  expect(Object.values(localStorage)).toEqual(['[]']);
});

describe('texts of the server', () => {
  const german = {
    __: (text: string) => (text === 'Small' ? 'Klein' : `de: ${text}`)
  } as TranslationBundle;

  it('are preceded by what their code means, in another language', () => {
    const message = 'needs 64 CPUs';
    expect(explainCode('never_fits', message, TRANS)).toBe(message);
    expect(explainCode('never_fits', message, german)).toBe(
      'de: No machine here is large enough for it. needs 64 CPUs'
    );
    expect(explainCode('of_tomorrow', message, german)).toBe(message);
    expect(explainCode(null, message, german)).toBe(message);
    expect(explainUnavailable('no GPU', TRANS)).toBe('no GPU');
    expect(explainUnavailable('no GPU', german)).toBe(
      'de: Not available here. no GPU'
    );
  });

  it('are translated if the shipped catalog has them', () => {
    expect(catalogText('Small', german)).toBe('Klein');
    expect(catalogText('Ours', german)).toBe('Ours');
    expect(catalogText('', german)).toBe('');
    const catalog = path.join(__dirname, '../../flavors.yaml');
    const texts = [
      ...readFileSync(catalog, 'utf8').matchAll(
        /(?:^ +|[{,] *)(?:title|description): ((?<=^ +\w+: ).+|[^,}\n]+)/gm
      )
    ].map(([, text]) => text!);
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.filter(text => catalogText(text, german) === text)).toEqual(
      []
    );
  });
});
