/** Copy Parameters into Notebook: in other languages than Python it writes what their results have. */
import { Notification } from '@jupyterlab/apputils';
import { ServerConnection } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

import { Client } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { useParameters } from '../src/submit/useParameters';
import { CannotSubmit } from '../src/ui/errors';
import { job, TRANS } from './fixtures';

type Cell = { source: string; metadata: { tags: string[] } };

/** Copy a job's parameters; `injected` is the cell that its run has added, and `source` ours. */
async function copy(
  language: string,
  parameters: object,
  injected: string,
  source?: string
) {
  const tell = jest.spyOn(Notification, 'emit').mockReturnValue('');
  const cells: Cell[] =
    source === undefined
      ? []
      : [{ source, metadata: { tags: ['parameters'] } }];
  const sharedModel = {
    metadata: { language_info: { name: language } },
    get cells() {
      return cells;
    },
    getCell: (index: number) => ({
      getSource: () => cells[index]!.source,
      transact: (change: () => void) => change(),
      updateSource: (start: number, end: number, text: string) => {
        const { source: old } = cells[index]!;
        cells[index]!.source = old.slice(0, start) + text + old.slice(end);
      }
    }),
    insertCell: (_: number, cell: Cell) => cells.unshift(cell)
  };
  const panel = {
    content: { model: { sharedModel }, scrollToItem: () => undefined },
    context: { model: { sharedModel } },
    revealed: Promise.resolve()
  };
  const commands = { execute: () => Promise.resolve(panel) };
  const metadata = { tags: ['injected-parameters'] };
  const urls: string[] = [];
  const fetch = (request: Request) => {
    urls.push(request.url);
    const result = { cells: [{ source: injected, metadata }] };
    return Promise.resolve(new Response(JSON.stringify(result)));
  };
  const settings = ServerConnection.makeSettings({
    fetch: fetch as typeof window.fetch
  });
  const failure: unknown = await useParameters(
    job({ parameters: parameters as Job['parameters'] }),
    {
      commands: commands as unknown as CommandRegistry,
      journalApi: new Client(settings),
      trans: TRANS
    }
  ).catch((error: unknown) => error);
  const told = tell.mock.calls.length;
  tell.mockRestore();
  return { failure, told, urls, sources: cells.map(cell => cell.source) };
}

it('says that the notebook cannot be opened, and what to do', async () => {
  const commands = { execute: () => Promise.reject(new Error('404')) };
  const services = { commands, trans: TRANS, journalApi: {} };
  await expect(useParameters(job(), services as never)).rejects.toThrow(
    'study.ipynb cannot be opened (404). If it was moved or deleted, the job can be rerun.'
  );
});

it.each([
  ['scala', '// Parameters\nval rate = 0.5\n'],
  ['C#', '// Parameters\nvar rate = 0.5;\n'],
  ['F#', '(* Parameters *)\nlet rate = 0.5\n'],
  ['powershell', '# Parameters\n$rate = 0.5\n']
])('says so where it does not know %s', async (language, injected) => {
  const copied = await copy(language, { rate: 0.5 }, injected, '1');
  expect(copied.failure).toBeInstanceOf(CannotSubmit);
  expect(copied).toMatchObject({ told: 0, sources: ['1'] });
});

it('writes no part of the parameters', async () => {
  const parameters = { rate: 0.5, epochs: 3 };
  const copied = await copy('R', parameters, 'rate = 0.5\n', 'rate <- 1');
  expect(copied.failure).toBeInstanceOf(CannotSubmit);
  expect(copied.sources).toEqual(['rate <- 1']);
});

it.each([
  [undefined, 'rate=0.5\nname=a'],
  ['rate=1', 'rate=0.5\nname=a']
])('writes bash as its shell reads it, into %j', async (source, written) => {
  const parameters = { rate: 0.5, name: 'a' };
  const injected = '# Parameters\nrate=0.5\nname=a\n';
  const copied = await copy('bash', parameters, injected, source);
  expect(copied).toEqual({
    failure: undefined,
    told: 1,
    urls: [expect.stringMatching(/\/notebook\?outputs=false\b/)],
    sources: [written]
  });
});

it.each([
  ['lr = 0.1\nif fast:\n    lr = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\ndef f():\n\tlr = 3\n\treturn lr\n', 'lr = 0.7'],
  ['lr = 0.1\nif fast:\n    n = 2; lr = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\nif fast: n = 2; lr = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\nif fast: lr = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\nif x: pass\nelse: lr = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\nif n := d[":"] or d[1:]: lr: float = 0.5', '\nlr = 0.7'],
  ['lr = 0.1\nlr *= 2', '\nlr = 0.7'],
  ['lr = 0.1\nif fast: lr //= 2', '\nlr = 0.7']
])('adds to %j what only a part of it may set', async (source, added) => {
  const copied = await copy('python', { lr: 0.7 }, '', source);
  expect(copied.sources).toEqual([source + added]);
  const again = await copy('python', { lr: 0.8 }, '', source + added);
  expect(again.sources).toEqual([source + added.replace('0.7', '0.8')]);
});

it.each([
  'lr = 0.1\nprint(lr)\nn = 2',
  'lr = 0.1\nif lr == 0.5 or lr <= 1: n = 2',
  'lr: float | None = 0.1\nelse_: int = 3',
  'tryout = 1\nlr = 0.1'
])('changes in %j what every run sets', async source => {
  const copied = await copy('python', { lr: 0.7 }, '', source);
  expect(copied.sources).toEqual([source.replace('0.1', '0.7')]);
});
