/** The settings, and what they do in the dialog. */
import { readFileSync } from 'fs';
import * as path from 'path';

import { withDefaults } from '../src/dialog/defaultChoices';
import {
  DEFAULTS,
  RegistryPreferences,
  SETTINGS_ID
} from '../src/settings/preferences';

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
  const set = { ...DEFAULTS, flavor: 'gpu-1', device: 't4' };

  it('are for notebooks without jobs', () => {
    const declined = ['a.csv'];
    expect(withDefaults({ declined }, set)).toEqual({
      choices: { flavor: 'gpu-1', device: 't4' },
      declined
    });
    expect(withDefaults({}, DEFAULTS).choices).toEqual({});
    const known = { choices: { flavor: 'small', device: 'cpu' } };
    expect(withDefaults(known, set)).toEqual(known);
  });
});
