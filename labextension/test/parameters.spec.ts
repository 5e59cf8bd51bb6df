/** What the form makes of the defaults in a notebook, and of what is typed. */
import type { Parameter } from '../src/api';
import { ParameterForm } from '../src/dialog/parameters';
import { TRANS } from './fixtures';

/** The defaults of these tests, as the server reads them; of any other source the value is null. */
const VALUES: Record<string, unknown> = {
  True: true,
  '3': 3,
  '0xFF': 255,
  '1.0': 1,
  '1e17': 1e17,
  "'a'": 'a',
  '[1]': [1],
  '[1, 2]': [1, 2],
  '{}': {}
};

function parameter(
  source: string | null,
  type: string | null = null
): Parameter {
  const value = VALUES[source ?? ''] ?? null;
  return { name: 'p', type, default: source, value, help: null };
}

/** A number as the browser reads it: rounded if it is whole and large. */
const read = (text: string) => JSON.parse(text) as number;

function form(source: string | null, type: string | null = null) {
  const made = new ParameterForm(TRANS);
  made.setParameters([parameter(source, type)]);
  return made;
}

describe('ParameterForm', () => {
  it.each([
    ['True', null, 'bool', 'true'],
    ['3', null, 'float', '3'],
    ['3', 'int', 'int', '3'],
    ['1.0', null, 'float', '1.0'],
    ["'a'", null, 'text', 'a'],
    ['[1, 2]', null, 'json', '[1,2]'],
    ['None', null, 'any', ''],
    ['None', 'list', 'json', ''],
    ['60 * 60', 'int', 'int', ''],
    ['open("a")', null, 'any', ''],
    [null, 'str', 'text', '']
  ])('shows the default %s (%s) as %s', (source, type, kind, text) => {
    const [field] = form(source, type).fields!;
    expect(field).toMatchObject({ kind, text, isChanged: false, error: null });
  });

  it.each([
    ['True', null, 'false', false],
    ['3', null, '0.5', 0.5],
    ['3', 'int', ' 7 ', 7],
    ["'a'", null, '', ''],
    ["'a'", null, '5', '5'],
    [
      '[1]',
      null,
      ' ["a, 12345678901234567890", null]',
      ['a, 12345678901234567890', null]
    ],
    ['None', null, '{"a": [1.5e3, -2]}', { a: [1500, -2] }],
    ['None', null, 'True', true],
    ['None', null, 'None', null],
    ['None', null, '"12345678901234567890"', '12345678901234567890'],
    ['None', null, '[12345678901234567890', '[12345678901234567890'],
    ['0xFF', null, '0x1F', 31],
    ['0xFF', 'int', '0b11', 3],
    ['None', null, 'null', null],
    ['None', null, '5', 5],
    ['None', null, 'a word', 'a word'],
    ['60 * 60', 'int', '5', 5]
  ])('sends for %s (%s) what %s stands for', (source, type, text, value) => {
    const made = form(source, type);
    made.setText('p', text);
    expect(made.hasErrors).toBe(false);
    expect(made.values).toEqual({ p: value });
    expect(made.fields![0]).toMatchObject({ text, isChanged: true });
  });

  it.each([
    ['3', null, '3.0'],
    ['True', null, 'true'],
    ['[1]', null, '[ 1 ]'],
    ['60 * 60', 'int', '']
  ])('sends nothing for %s where %s changes nothing', (source, type, text) => {
    const made = form(source, type);
    made.setText('p', text);
    expect(made.values).toEqual({});
    expect(made.hasErrors).toBe(false);
  });

  it.each([
    ['3', 'int', '1.5'],
    ['3', 'int', ''],
    ['3', null, 'many'],
    ['3', null, '12345678901234567890'],
    ['[1]', null, '[1'],
    ['[1]', null, "['a']"],
    ['[1]', null, '[12345678901234567890]'],
    ['[1]', null, '[1e999]'],
    ['{}', null, ''],
    ['0xFF', null, '0xFFFFFFFFFFFFFFFF'],
    ['0xFF', null, '0o7777777777777777777777'],
    ['None', null, ' 12345678901234567890'],
    ['1234567890123456789', null, '1234567890123456790'],
    ['None', null, '[12345678901234567890, 2]'],
    ['None', null, '{"id": 12345678901234567890}'],
    ['None', null, '1e999']
  ])('does not take for %s (%s) the text "%s"', (source, type, text) => {
    const made = form(source, type);
    made.setText('p', text);
    expect(made.hasErrors).toBe(true);
    expect(made.values).toEqual({});
    expect(made.fields![0]).toMatchObject({ text, isChanged: true });
    expect(made.fields![0]!.error).not.toBeNull();
    made.reset('p');
    expect(made.hasErrors).toBe(false);
  });

  it.each([
    ['None', false, '12345678901234567890'],
    ['None', true, '7\n12345678901234567890'],
    ['None', true, '[7, 12345678901234567890]'],
    ['None', true, '[7,\n12345678901234567890]'],
    ['[1]', false, '[12345678901234567890]'],
    ['3', false, '12345678901234567890'],
    ['3', false, '1e999'],
    ['3', true, '7, +12345678901234567890'],
    ['0xFF', false, '0xFFFFFFFFFFFFFFFF']
  ])('says for %s (several: %s) what is too large', (source, is, text) => {
    const made = form(source);
    made.setSeveral('p', is);
    made.setText('p', text);
    expect(made.fields![0]!.error).toContain('too large for the browser');
    made.setText('p', '{');
    expect(made.fields![0]!.error ?? '').not.toContain('too large');
  });

  it.each([
    ['3', null, read('1234567890123456789')],
    ['3', 'int', read('-1234567890123456789')],
    [null, null, read('12345678901234567890123456')],
    ['[1]', null, [1, { a: read('9007199254740993') }]],
    ["'a'", null, read('9007199254740993')],
    ['True', null, read('9007199254740993')]
  ])('does not send for %s (%s) what was rounded', (source, type, value) => {
    const made = new ParameterForm(TRANS, { p: value, other: 1 });
    expect(made.hasErrors).toBe(true);
    made.setParameters([parameter(source, type)]);
    expect(made.hasErrors).toBe(true);
    expect(made.values).toEqual({ other: 1 });
    expect(made.fields![0]!.error).not.toBeNull();
    made.reset('p');
    expect(made.hasErrors).toBe(false);
  });

  it.each([
    ['1e17', null],
    ['1.0', null],
    [null, 'float']
  ])('sends a large float where %s (%s) is one', (source, type) => {
    const made = new ParameterForm(TRANS, { p: 5e17 });
    made.setParameters([parameter(source, type)]);
    expect(made.hasErrors).toBe(false);
    expect(made.values).toEqual({ p: 5e17 });
  });

  it('takes what was rounded where the server has it exactly', () => {
    const initial = { p: read('1234567890123456789') };
    const made = new ParameterForm(TRANS, initial, {}, true);
    made.setParameters([parameter('3')]);
    expect(made.hasErrors).toBe(false);
    expect(made.values).toEqual(initial);
    made.setText('p', '1234567890123456788');
    expect(made.hasErrors).toBe(true);
  });

  it('drops an earlier value where the notebook has another default now', () => {
    const earlier = { p: '3' };
    const same = new ParameterForm(TRANS, { p: 5, other: 1 }, earlier);
    expect(same.awaitsDefaults).toBe(true);
    same.setParameters([parameter('3')]);
    expect(same.values).toEqual({ p: 5, other: 1 });
    expect(same.changedDefaults).toEqual(earlier);

    const changed = new ParameterForm(TRANS, { p: 5, other: 1 }, earlier);
    changed.setParameters([parameter('1.0')]);
    expect(changed.values).toEqual({ other: 1 });
    expect(changed.awaitsDefaults).toBe(false);
    changed.setText('p', '5');
    changed.setParameters([parameter('3')]);
    expect(changed.values).toEqual({ p: 5, other: 1 }); // the user chose it
  });

  it('shows what the notebook does not declare, and can remove it', () => {
    const made = new ParameterForm(TRANS, { p: 5, other: 1, word: 'a' });
    expect(made.values).toEqual({ p: 5, other: 1, word: 'a' });
    made.setParameters([parameter('3')]);
    expect(made.values).toEqual({ p: 5, other: 1, word: 'a' });
    expect(made.fields).toMatchObject([
      { name: 'p', text: '5', isChanged: true, isDeclared: true },
      { name: 'other', text: '1', isChanged: true, isDeclared: false },
      { name: 'word', text: 'a', isChanged: true, isDeclared: false }
    ]);
    made.setText('other', '[2]');
    made.setText('never', '3');
    made.reset('word');
    expect(made.values).toEqual({ p: 5, other: [2] });
    expect(made.fields!.map(({ name }) => name)).toEqual(['p', 'other']);
  });
});
