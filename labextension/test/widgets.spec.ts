/** ipywidgets in the live view, from the records of a run; and other outputs that it renders. */
import {
  MimeModel,
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import type { JSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';

import { Fold, type JournalRecord } from '../src/live/fold';
import { createNotices } from '../src/live/notices';
import { addSafeRenderers } from '../src/live/render/factories';
import { toSafeSheet } from '../src/live/render/safeStyle';
import { WIDGET_VIEW } from '../src/live/render/widgetOutput';
import { TRANS } from './fixtures';

const CONTROLS = '@jupyter-widgets/controls';

function widget(
  id: string,
  name: string,
  state: JSONObject = {},
  module = CONTROLS
): JournalRecord {
  const model = { _model_name: `${name}Model`, _model_module: module };
  return { k: 'widget', i: 0, id, state: { ...model, ...state } };
}

const change = (id: string, state: JSONObject, i = 0): JournalRecord => ({
  k: 'widget',
  i,
  id,
  state
});

const print = (text: string, i = 0): JournalRecord => ({
  k: 'output',
  i,
  output: { output_type: 'stream', name: 'stdout', text }
});

const ref = (id: string) => `IPY_MODEL_${id}`;

/** What tqdm.notebook sends when a loop begins. */
const TQDM = [
  widget('label', 'HTML', { value: '  0%' }),
  widget('look', 'Layout', { flex: '2' }, '@jupyter-widgets/base'),
  widget('style', 'ProgressStyle', { bar_color: null }),
  widget('bar', 'FloatProgress', {
    value: 0,
    max: 50,
    bar_style: 'info',
    layout: ref('look'),
    style: ref('style')
  }),
  widget('rate', 'HTML', { value: ' 0/50 [00:00&lt;?, ?it/s]' }),
  widget('row', 'Layout', { display: 'inline-flex' }, '@jupyter-widgets/base'),
  widget('box', 'HBox', {
    children: [ref('label'), ref('bar'), ref('rate')],
    layout: ref('row')
  })
];

/** A view of a run, and what an output of it looks like. */
class Page {
  constructor(...records: JournalRecord[]) {
    this.rendermime = new RenderMimeRegistry({
      initialFactories: standardRendererFactories
    });
    const store = this.fold.widgets;
    addSafeRenderers(this.rendermime, { store, trans: TRANS });
    this.play(...records);
  }

  readonly fold = new Fold(createNotices(TRANS));
  readonly rendermime: RenderMimeRegistry;

  play(...records: JournalRecord[]): void {
    records.forEach(record => this.fold.apply(record));
    this.fold.widgets.flush();
  }

  async show(id: string): Promise<HTMLElement> {
    return this.render({
      [WIDGET_VIEW]: { model_id: id },
      'text/plain': 'as text'
    });
  }

  async render(data: JSONObject): Promise<HTMLElement> {
    const model = new MimeModel({ data, trusted: false });
    const type = this.rendermime.preferredMimeType(data, 'ensure')!;
    const renderer = this.rendermime.createRenderer(type);
    Widget.attach(renderer, document.body);
    await renderer.renderModel(model);
    return renderer.node;
  }
}

const text = (node: HTMLElement) =>
  node.textContent.replace(/\s+/g, ' ').trim();

const bar = (node: HTMLElement) =>
  node.querySelector<HTMLElement>('[role=progressbar]')!;

test('a progress bar moves, and what stands beside it', async () => {
  const page = new Page(...TQDM);
  const node = await page.show('box');
  expect(text(node)).toBe('0% 0/50 [00:00<?, ?it/s]');
  expect(bar(node).getAttribute('aria-valuenow')).toBe('0');
  const before = bar(node);
  page.play(
    change('bar', { value: 25 }),
    change('label', { value: ' 50%' }),
    change('style', { bar_color: 'rgb(1, 2, 3)' })
  );
  expect(bar(node)).toBe(before);
  expect(bar(node).getAttribute('aria-valuenow')).toBe('25');
  const filled = bar(node).firstElementChild as HTMLElement;
  expect(filled.style.width).toBe('50%');
  expect(filled.style.backgroundColor).toBe('rgb(1, 2, 3)');
  expect(text(node)).toMatch(/^50%/);
  page.play(change('bar', { value: 50, bar_style: 'success' }));
  expect(filled.className).toContain('jp-mod-success');
  page.play(change('look', { visibility: 'hidden' }));
  expect(bar(node).parentElement!.style.visibility).toBe('hidden');
});

test('a closed widget leaves nothing, and an unknown one a word', async () => {
  const page = new Page(...TQDM);
  const node = await page.show('box');
  page.play({ k: 'widget_close', id: 'box' });
  expect(text(node)).toBe('');
  expect(text(await page.show('never'))).toMatch(/not shown here/);
  page.play(widget('map', 'Map', {}, 'jupyter-leaflet'));
  expect(text(await page.show('map'))).toMatch(/The widget Map is not shown/);
  page.play({ k: 'omitted', of: 'widget', id: 'label', bytes: 2 << 20 });
  expect(text(await page.show('label'))).toMatch(/not shown here/);
});

test('a widget whose beginning comes late is shown then', async () => {
  const page = new Page();
  const node = await page.show('box');
  expect(text(node)).toMatch(/not shown here/);
  page.play(...TQDM);
  expect(bar(node)).not.toBeNull();
});

test('children come, go and change places', async () => {
  const page = new Page(
    widget('a', 'Label', { value: 'a' }),
    widget('b', 'Label', { value: 'b' }),
    widget('box', 'VBox', { children: [ref('a'), ref('b'), ref('box')] })
  );
  const node = await page.show('box');
  expect(text(node)).toBe('ab');
  page.play(change('box', { children: [ref('b'), ref('a')] }));
  expect(text(node)).toBe('ba');
  page.play(change('box', { children: [ref('a')] }));
  expect(text(node)).toBe('a');
  page.play({ k: 'widget_close', id: 'a' });
  expect(text(node)).toBe('');
});

test('an Output widget shows what it captured', async () => {
  const page = new Page(
    {
      k: 'prepared',
      notebook: {
        nbformat: 4,
        nbformat_minor: 5,
        metadata: {},
        cells: [{ cell_type: 'code', source: '', metadata: {}, outputs: [] }]
      }
    },
    widget(
      'out',
      'Output',
      { msg_id: '', outputs: [] },
      '@jupyter-widgets/output'
    ),
    change('out', { msg_id: 'x' }),
    print('inside\n')
  );
  const node = await page.show('out');
  expect(text(node)).toBe('inside');
  page.play(print('more\n'), change('out', { msg_id: '' }), print('below\n'));
  expect(text(node)).toBe('inside more');
  const [cell] = page.fold.cells;
  expect(cell!.outputs.shown).toMatchObject([{ text: 'below\n' }]);
  page.play(
    change('out', { msg_id: 'y' }),
    { k: 'clear', i: 0, wait: true },
    print('new\n')
  );
  expect(text(node)).toBe('new');
});

/** How many elements there are, and what the output says of itself. */
const shownOf = (node: HTMLElement) => [
  node.querySelectorAll('.jp-ToJob-widget').length,
  node.lastElementChild!.textContent
];

const CUT =
  'Not all widgets of this output are shown here: the result has them.';

test('boxes that share their children are cut at some number', async () => {
  const levels = Array.from({ length: 30 }, (_, level) =>
    ['a', 'b'].map(side =>
      widget(`${side}${level}`, 'VBox', {
        children: [ref(`a${level + 1}`), ref(`b${level + 1}`)]
      })
    )
  );
  const page = new Page(...levels.flat());
  const node = await page.show('a0');
  expect(shownOf(node)).toEqual([1000, CUT]);
  page.play(change('a0', { children: [ref('a29')] }));
  expect(shownOf(node)[0]).toBe(4);
  expect(text(node)).not.toContain(CUT);
  page.play(change('a0', { children: [ref('a1')] }));
  expect(shownOf(node)).toEqual([1000, CUT]);
});

test('an Output widget that shows itself ends somewhere', async () => {
  const display = {
    output_type: 'display_data',
    data: { [WIDGET_VIEW]: { model_id: 'out' } },
    metadata: {}
  };
  const page = new Page(
    widget(
      'out',
      'Output',
      { msg_id: '', outputs: [display, display] },
      '@jupyter-widgets/output'
    ),
    widget('box', 'VBox', { children: [ref('out')] })
  );
  expect(text(await page.show('box'))).toBe(CUT + CUT);
});

test('controls are text, with a word', async () => {
  const page = new Page(
    widget('slider', 'IntSlider', { value: 7, description: 'rate' }),
    widget('choice', 'Dropdown', { _options_labels: ['x', 'y'], index: 1 }),
    widget('secret', 'Password', { value: 'hidden' }),
    widget('box', 'VBox', {
      children: [ref('slider'), ref('choice'), ref('secret')]
    })
  );
  expect(text(await page.show('box'))).toBe(
    'rate7y•••Controls are shown as text here: the result has them.'
  );
});

test('a picture is shown that is in the model, and none from elsewhere', async () => {
  const picture = { _model_name: 'ImageModel', _model_module: CONTROLS };
  const page = new Page({
    k: 'widget',
    id: 'image',
    state: { ...picture, format: 'png' },
    buffers: [{ path: ['value'], encoding: 'base64', data: 'AAAA' }]
  });
  const node = await page.show('image');
  const source = () => node.querySelector('img')?.getAttribute('src');
  expect(source()).toBe('data:image/png;base64,AAAA');
  page.play(change('image', { format: 'url' }));
  expect(source()).toBeUndefined();
});

test('nothing in a widget is executed', async () => {
  const evil =
    '<b>kept</b><img src=x onerror="steal()"><script>steal()</script>';
  const page = new Page(
    widget('html', 'HTML', { value: evil, description: evil }),
    widget('label', 'Label', { value: evil })
  );
  const html = await page.show('html');
  expect(html.querySelector('b')).not.toBeNull();
  expect(html.querySelector('script, [onerror]')).toBeNull();
  expect((await page.show('label')).querySelector('b')).toBeNull();
});

test('an SVG is a picture, in which nothing is executed', async () => {
  const node = await new Page().render({
    'image/svg+xml': '<svg onload="steal()"><circle r="9"/></svg>',
    'text/plain': '<SVG>'
  });
  const { src } = node.querySelector('img')!;
  expect(decodeURIComponent(src)).toContain(
    'xmlns="http://www.w3.org/2000/svg" onload'
  );
  expect(node.querySelector('svg')).toBeNull();
});

const rule = (selectorText: string, declarations: Record<string, string>) => {
  const names = Object.keys(declarations);
  return {
    selectorText,
    style: Object.assign([...names], {
      getPropertyValue: (name: string) => declarations[name] ?? ''
    })
  };
};

describe('the style of a table', () => {
  it('colours what is inside', () => {
    const sheet = toSafeSheet(
      [rule('#T_1_row0_col0, .x td:hover', { 'background-color': 'red' })],
      '.s'
    );
    expect(sheet).toEqual({
      isWhole: true,
      text: '.s :is(:is(#T_1_row0_col0, [data-jupyter-id="T_1_row0_col0"]), .x td:hover) { background-color: red; }'
    });
  });

  it.each([
    ['background-image', 'url("https://evil.example/x")'],
    ['background-image', 'var(--x, u\\72l(x))'],
    ['background-image', 'image-set("x" 1x)'],
    ['position', 'fixed'],
    ['margin-top', '-99px'],
    ['color', 'red} body {color: red'],
    ['--x', '1']
  ])('does without %s: %s', (name, value) => {
    const { text: sheet, isWhole } = toSafeSheet(
      [rule('td', { [name]: value })],
      '.s'
    );
    expect([sheet, isWhole]).toEqual(['', false]);
  });

  it.each(['a[href^="x"]', 'td { } body', '', undefined])(
    'does without rules for %s',
    selector => {
      const rules = [{ ...rule('', { color: 'red' }), selectorText: selector }];
      expect(toSafeSheet(rules, '.s')).toEqual({ text: '', isWhole: false });
    }
  );

  it('keeps gradients', () => {
    const value = 'linear-gradient(90deg, rgb(1, 2, 3) 50%, transparent 50%)';
    const rules = [rule('td', { 'background-image': value })];
    expect(toSafeSheet(rules, '.s').isWhole).toBe(true);
  });
});
