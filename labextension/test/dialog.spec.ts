/** What the dialog's model decides: choices, when to ask, what blocks, and how it sends. */
import type { Catalog, Preflight } from '../src/api';
import { LatestQuery } from '../src/dialog/latestQuery';
import { SubmitModel } from '../src/dialog/model';
import { describeRunPlace } from '../src/dialog/runPlace';
import { ApiError, type IDialogApi } from '../src/jobs/client';
import type { Choices, Job, Submission } from '../src/jobs/job';
import type { INotebookSource } from '../src/source';
import { CATALOG, flavor, job, preflight, TRANS } from './fixtures';

/** Let everything that is due happen. */
const settle = () => new Promise(resolve => setTimeout(resolve, 5));

/** A server in memory: it says what it is told to say. */
class Server implements IDialogApi {
  readonly asked: Submission[] = [];
  readonly calledOff: string[] = [];
  catalog: Catalog | ApiError = CATALOG;
  answer: (asked: Submission) => Preflight = () => preflight();

  getHealth() {
    const health = { status: 'ok', version: '1', backend: 'local' } as const;
    return Promise.resolve({ ...health, events: true });
  }

  getCatalog(): Promise<Catalog> {
    return this.catalog instanceof ApiError
      ? Promise.reject(this.catalog)
      : Promise.resolve(this.catalog);
  }

  checkSubmission(submission: Submission): Promise<Preflight> {
    this.asked.push(submission);
    return Promise.resolve(this.answer(submission));
  }

  withdraw(key: string): Promise<void> {
    this.calledOff.push(key);
    return Promise.resolve();
  }
}

type Sent = { choices: Choices; key: string; plan?: Submission['plan'] };

/** A source that keeps what was sent, and answers as it is told. */
function source(
  sent: Sent[],
  answers: (Job | ApiError)[] = []
): INotebookSource {
  return {
    path: 'study.ipynb',
    note: null,
    initialChoices: {},
    takesFiles: true,
    toSubmission: () => ({ notebook: 'study.ipynb' }),
    submit: (choices, key, plan) => {
      sent.push({ choices, key, ...(plan && { plan }) });
      const answer = answers.shift() ?? job();
      return answer instanceof ApiError
        ? Promise.reject(answer)
        : Promise.resolve(answer);
    }
  };
}

async function open(
  choices: Choices = {},
  server = new Server(),
  answers: (Job | ApiError)[] = []
) {
  const sent: Sent[] = [];
  const model = new SubmitModel(
    source(sent, answers),
    server,
    TRANS,
    { choices },
    0
  );
  await model.refreshCatalog();
  await settle();
  return { model, server, sent };
}

describe('SubmitModel', () => {
  it('takes what is usual where nothing was chosen', async () => {
    const { model } = await open();
    expect(model.choices).toEqual({ flavor: 'small', device: 'cpu' });
  });

  it('follows a flavor with a device that it has', async () => {
    const { model } = await open({ flavor: 'gpu', device: 'part' });
    expect(model.device).toBe('part');
    model.chooseFlavor('small');
    expect(model.device).toBe('cpu');
    model.chooseFlavor('gpu');
    expect(model.device).toBe('part');
  });

  it.each(['huge', 'team', 'gone'])(
    'takes the usual flavor for %s, which cannot be had',
    async name => {
      const { model } = await open({ flavor: name });
      expect(model.flavor).toBe('small');
    }
  );

  it('takes the first flavor that can be had where the usual one cannot', async () => {
    const server = new Server();
    server.catalog = {
      ...CATALOG,
      flavors: { ...CATALOG.flavors, small: flavor({ allowed: false }) }
    };
    const { model } = await open({}, server);
    expect(model.choices).toEqual({ flavor: 'gpu', device: 't4' });
  });

  it('asks about the newest choices only', async () => {
    const { model, server } = await open();
    expect(server.asked).toHaveLength(1);
    model.setText('name', 'a');
    model.setText('name', 'ab');
    expect(model.isChecking).toBe(true);
    await settle();
    expect(server.asked.map(({ name }) => name)).toEqual([undefined, 'ab']);
    expect(model.isChecking).toBe(false);
  });

  it('does not ask about what is wrong in itself, and does not send it', async () => {
    const { model, server, sent } = await open();
    model.setText('maxRuntime', 'soon');
    model.setText('priority', '101');
    await settle();
    expect(server.asked).toHaveLength(1);
    expect(model.problems).toHaveLength(2);
    expect(await model.send()).toBeNull();
    expect(sent).toEqual([]);
  });

  it('is blocked by what the server says, until something changes', async () => {
    const server = new Server();
    server.answer = ({ flavor: asked }) =>
      preflight({
        problems:
          asked === 'small'
            ? [{ code: 'no', message: 'No.', hint: '', blocking: true }]
            : []
      });
    const { model, sent } = await open({}, server);
    expect(model.isBlocked).toBe(true);
    expect(await model.send()).toBeNull();
    model.chooseFlavor('gpu');
    expect(model.isBlocked).toBe(false);
    expect(await model.send()).toEqual(job());
    expect(sent).toHaveLength(1);
  });

  it('sends along what the notebook needs where it would miss it', async () => {
    const server = new Server();
    const helper = { path: 'helpers.py', size: 5, why: 'import helpers' };
    const data = { path: 'a.csv', size: 5, why: 'open("a.csv")' };
    server.answer = ({ isolated }) =>
      preflight({ suggested: [helper, data], isolated: isolated ?? false });
    const { model } = await open({}, server);
    expect(model.choices.inputs).toBeUndefined();
    model.change(() => (model.files.isIsolated = true));
    await settle();
    model.change(() => model.files.setIncluded('a.csv', false));
    model.change(() => model.files.add('/more/*.csv'));
    await settle();
    expect(model.choices.inputs).toEqual(['helpers.py', 'more/*.csv']);
    expect(server.asked.at(-1)!.inputs).toEqual(model.choices.inputs);
    expect(model.files.declinedPaths).toEqual(['a.csv']);
  });

  it('says before it is sent what the run would see', async () => {
    const server = new Server();
    const { model } = await open({}, server);
    const say = async (changes: Partial<Preflight>) => {
      server.answer = () => preflight(changes);
      model.setText('name', String(server.asked.length)); // so that it asks again
      await settle();
      return describeRunPlace(model.preflight!, model.files, TRANS);
    };
    const back =
      'Files that it writes there come back in a folder beside the result.';
    const mounts = ['/home/ada', '/data'];
    expect(await say({})).toEqual([]);
    expect(await say({ mounts })).toEqual([
      'The run works in the notebook’s own folder. It sees these folders as you do here: /home/ada, /data.'
    ]);
    expect(await say({ isolated: true })).toEqual([
      'Isolated: the run works in a scratch folder, and no file goes along with the notebook.',
      back
    ]);
    const inputs = [{ path: 'a.csv', size: 1 }];
    expect(await say({ isolated: true, inputs, mounts: ['/data'] })).toEqual([
      'Isolated: the run works in a scratch folder, and 1 file goes along with the notebook.',
      'It sees these folders as you do here: /data.',
      back
    ]);
  });

  it('is one job however often it is sent, and another one after a change', async () => {
    const lost = new ApiError('unreachable', '');
    const answers = [lost, lost, lost];
    const { model, sent } = await open({}, new Server(), answers);
    await Promise.all([model.send(), model.send()]);
    expect(sent).toHaveLength(1);
    expect(model.failure).toEqual({ error: lost, isSubmission: true });
    await model.send();
    model.setText('name', 'other');
    await model.send();
    const [first, second, third] = sent.map(({ key }) => key);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it.each(['plan_changed', 'partly_submitted'])(
    'sends the plan that it has told, and tells another one: %s',
    async code => {
      const server = new Server();
      let folders = 'mounted';
      server.answer = ({ device }) =>
        preflight({ plan: { device: device!, folders } });
      const changed = new ApiError('refused', 'Changed.', '', code);
      const { model, sent } = await open({ flavor: 'gpu' }, server, [changed]);
      folders = 'left behind';
      expect(await model.send()).toBeNull();
      await settle();
      expect(model.failure?.error).toBe(changed);
      expect(model.presentPreflight?.plan).toEqual({ device: 't4', folders });

      expect(await model.send()).not.toBeNull();
      expect(sent.map(({ plan }) => plan?.folders)).toEqual([
        'mounted',
        'left behind'
      ]);
      expect(sent[1]!.key).toBe(sent[0]!.key);
    }
  );

  it('tells and sends no plan of other choices', async () => {
    const server = new Server();
    server.answer = () =>
      preflight({ mounts: ['/home'], plan: { image: 'a' } });
    const { model, sent } = await open({ flavor: 'gpu' }, server);
    expect(model.presentPreflight?.mounts).toEqual(['/home']);
    model.setText('name', 'mine'); // decides nothing of where it runs
    await model.send();
    model.chooseDevice('part');
    expect(model.presentPreflight).toBeNull();
    await model.send();
    expect(sent.map(({ plan }) => plan)).toEqual([{ image: 'a' }, undefined]);
  });

  it('keeps what was typed when the server refuses', async () => {
    const refusal = new ApiError('refused', 'Changed.', 'Save it.');
    const { model } = await open({}, new Server(), [refusal]);
    model.setText('name', 'mine');
    expect(await model.send()).toBeNull();
    expect(model.texts.name).toBe('mine');
    expect(model.isBlocked).toBe(false);
    model.setText('name', 'yours');
    expect(model.failure).toBeNull();
  });

  it('calls off what is being sent, and follows its copying', async () => {
    const { model, server } = await open();
    const sending = model.send();
    const key = model.sendingKey!;
    model.onCopyProgress(null, { key: 'another', bytes: 1, total: 2 });
    expect(model.copyProgress).toBeNull();
    model.onCopyProgress(null, { key, bytes: 1, total: 2 });
    expect(model.copyProgress).toMatchObject({ bytes: 1, total: 2 });
    model.setText('name', 'too late');
    expect(model.texts.name).toBe('');
    const calling = model.withdraw();
    expect(model.isWithdrawing).toBe(true);
    await calling;
    expect(server.calledOff).toEqual([key]);
    await sending;
    expect([model.copyProgress, model.isWithdrawing]).toEqual([null, false]);
  });

  it('takes a new key after one that was called off', async () => {
    const gone = new ApiError('refused', 'Withdrawn.', null, 'withdrawn');
    const { model, sent } = await open({}, new Server(), [gone]);
    expect(await model.send()).toBeNull();
    expect([model.isWithdrawn, model.failure]).toEqual([true, null]);
    expect(await model.send()).toEqual(job());
    expect(sent[1]!.key).not.toBe(sent[0]!.key);
  });

  it.each(['missing', 'outdated'] as const)(
    'sends nothing where the server part is %s',
    async failure => {
      const server = new Server();
      server.catalog = new ApiError(failure, 'HTTP 404');
      const { model, sent } = await open({}, server);
      expect(model.isBlocked).toBe(true);
      expect(await model.send()).toBeNull();
      expect(sent).toEqual([]);
      server.catalog = CATALOG;
      await model.refreshCatalog();
      expect(model.isBlocked).toBe(false);
    }
  );

  it('asks again for a catalog that it did not get, at the next change', async () => {
    const server = new Server();
    const error = new ApiError('unreachable', 'HTTP 503');
    server.catalog = error;
    const { model } = await open({}, server);
    model.setText('name', 'a');
    expect(model.failure).toBeNull(); // it is asked for
    await settle();
    expect(model.failure).toEqual({ error, isSubmission: false });
    server.catalog = CATALOG;
    model.setText('name', 'ab');
    await settle();
    expect([model.catalog, model.failure]).toEqual([CATALOG, null]);
    expect(server.asked.at(-1)).toMatchObject({ name: 'ab', flavor: 'small' });
  });

  it('waits for remembered choices before it sends', async () => {
    const { model, sent } = await open();
    let answer: (found: { choices: Choices }) => void = () => undefined;
    model.awaitRemembered(new Promise(resolve => (answer = resolve)));
    const sending = model.send();
    await settle();
    expect(sent).toEqual([]);
    answer({ choices: { flavor: 'gpu', parameters: { rate: 1 } } });
    await sending;
    expect(sent[0]!.choices).toEqual({
      flavor: 'gpu',
      device: 't4',
      parameters: { rate: 1 }
    });
  });

  it('sends nothing where a remembered number was rounded', async () => {
    const { model, sent } = await open();
    const user_id = JSON.parse('1234567890123456789') as number;
    const choices = { parameters: { user_id } };
    model.awaitRemembered(Promise.resolve({ choices }));
    expect(await model.send()).toBeNull(); // it was sent before they were known
    expect(model.isBlocked).toBe(true);
    expect(model.problems).toMatchObject([{ code: 'form', blocking: true }]);
    expect(await model.send()).toBeNull();
    expect(sent).toEqual([]);
    model.change(() => model.parameters.reset('user_id'));
    await model.send();
    expect(sent).toHaveLength(1);
  });

  it('leaves remembered choices that come after a choice of the user', async () => {
    const { model } = await open();
    model.setText('name', 'mine');
    model.awaitRemembered(Promise.resolve({ choices: { flavor: 'gpu' } }));
    await settle();
    expect(model.choices).toMatchObject({ flavor: 'small', name: 'mine' });
  });

  it.each([
    ['3', { rate: 5 }],
    ['4', undefined]
  ])(
    'sends a remembered value only while the default is the same: %s',
    async (text, parameters) => {
      const sent: Sent[] = [];
      const server = new Server();
      const rate = { name: 'rate', type: null, value: Number(text) };
      server.answer = () =>
        preflight({ parameters: [{ ...rate, default: text, help: null }] });
      const remembered = {
        choices: { parameters: { rate: 5 } },
        defaults: { rate: '3' }
      };
      const model = new SubmitModel(source(sent), server, TRANS, remembered, 0);
      const loading = model.refreshCatalog();
      const sending = model.send(); // before anything was answered
      await Promise.all([loading, sending]);
      expect(sent[0]!.choices.parameters).toEqual(parameters);
    }
  );

  it('sends all the same where nothing can be asked', async () => {
    const sent: Sent[] = [];
    const server = new Server();
    server.catalog = new ApiError('unreachable', 'HTTP 503');
    const remembered = {
      choices: { parameters: { rate: 5 } },
      defaults: { rate: '3' }
    };
    const model = new SubmitModel(source(sent), server, TRANS, remembered, 0);
    const loading = model.refreshCatalog();
    const sending = model.send();
    await Promise.all([loading, sending]);
    expect(sent[0]!.choices.parameters).toEqual({ rate: 5 });
  });

  it('calls off what waits for remembered choices', async () => {
    const { model, server, sent } = await open();
    let answer: (found: object) => void = () => undefined;
    model.awaitRemembered(new Promise(resolve => (answer = resolve)));
    const sending = model.send();
    await model.withdraw();
    answer({});
    expect(await sending).toBeNull();
    expect([model.isWithdrawn, sent, server.calledOff]).toEqual([true, [], []]);
  });
});

describe('Asker', () => {
  it('has one question under way, and then asks the newest', async () => {
    const asked: number[] = [];
    const told: unknown[] = [];
    let answer: (value: string) => void = () => undefined;
    const asker = new LatestQuery<number, string>(
      question => {
        asked.push(question);
        return new Promise(resolve => (answer = resolve));
      },
      found => told.push(found),
      0
    );
    asker.ask(1, true);
    asker.ask(2, true);
    asker.ask(3, true);
    expect(asked).toEqual([1]);
    answer('one');
    await settle();
    expect(asked).toEqual([1, 3]);
    answer('three');
    await settle();
    expect(told).toEqual(['three']);
    asker.ask(4, true);
    asker.dispose();
    answer('four');
    await settle();
    expect(told).toEqual(['three']);
  });
});
