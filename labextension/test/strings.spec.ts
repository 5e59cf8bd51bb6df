/** The catalogs of translations: complete, and of the same shape as what is in the sources. */
import { execFileSync } from 'child_process';
import { readFileSync } from 'fs';
import * as path from 'path';

import { Gettext } from '@jupyterlab/translation';

import { endTitle } from '../src/notify/endText';
import { countsText } from '../src/ui/countsText';
import { job } from './fixtures';

type Catalog = Record<string, string[]>;
type Found = { text: string; plural?: string; context?: string; at: string };

const ROOT = path.join(__dirname, '..', '..');

const strings = JSON.parse(
  execFileSync('node', [path.join(ROOT, 'scripts', 'strings.js'), '--list'], {
    encoding: 'utf8'
  })
) as Found[];

const keys = strings.map(({ context, text }) =>
  context === undefined ? text : `${context}\u0004${text}`
);

/** The placeholders of a text: `%1`, `%2`. */
const placeholders = (text: string) =>
  [...new Set(text.match(/%\d/g) ?? [])].sort();

test('the sources were read', () => {
  expect(keys).toContain('SUBMIT JOB');
  expect(strings.filter(({ plural }) => plural !== undefined)).not.toEqual([]);
});

describe.each(['zh_CN', 'zh_TW'])('the catalog of %s', language => {
  const { '': head, ...catalog } = JSON.parse(
    readFileSync(
      path.join(
        ROOT,
        'jupyter_to_job/locale',
        language,
        'LC_MESSAGES/jupyter_to_job.json'
      ),
      'utf8'
    )
  ) as Catalog & { '': Record<string, string> };

  it('is what JupyterLab looks for', () => {
    expect(head).toMatchObject({
      domain: 'jupyter_to_job',
      language: language.replace('_', '-'),
      plural_forms: 'nplurals=1; plural=0;'
    });
  });

  it('has every string of the sources, and no other: npm run strings', () => {
    expect(Object.keys(catalog).sort()).toEqual([...keys].sort());
  });

  it('translates each of them, with its placeholders and its end', () => {
    const isSound = ({ text, plural }: Found, at: number) => {
      const [translation = '', ...others] = catalog[keys[at]!] ?? [];
      return (
        translation !== '' &&
        // JupyterLab takes a list of one for a singular.
        others.join() === '' &&
        others.length === (plural === undefined ? 0 : 1) &&
        placeholders(translation).join() === placeholders(text).join() &&
        text.endsWith('…') === translation.endsWith('…')
      );
    };
    const unsound = strings.filter((string, at) => !isSound(string, at));
    expect(unsound).toEqual([]);
  });

  it('has two texts for a job that failed and for a number of them', () => {
    const domain = 'jupyter_to_job';
    const trans = new Gettext({ domain, locale: language });
    const header = {
      domain,
      language: head.language!,
      pluralForms: head.plural_forms!
    };
    trans.loadJSON({ ...catalog, '': header }, domain);
    const failed = job({ name: 'study-a', state: 'failed' });
    expect(endTitle(failed, trans)).toMatch(/^study-a [失败敗]+$/u);
    expect(countsText([failed], trans)).toMatch(/^[失败敗]+ 1 [个個]$/u);
  });
});
