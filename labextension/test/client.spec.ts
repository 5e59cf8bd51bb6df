/** What the client makes of answers that are none of ours. */
import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';

import { ApiError, Client } from '../src/jobs/client';
import { errorText } from '../src/ui/errors';

function answering(status: number, body: string): Client {
  const fetch = () => Promise.resolve(new Response(body, { status }));
  return new Client(ServerConnection.makeSettings({ fetch }));
}

const FROM_HUB = JSON.stringify({
  message: 'JupyterHub server no longer running at /user/ada/'
});
const OURS = JSON.stringify({
  error: { code: 'unavailable', message: 'The disk is full.', hint: 'Wait.' }
});
const NO_JOB = JSON.stringify({
  error: { code: 'not_found', message: "There is no job 'a'.", hint: '' }
});
const NO_ROUTE = JSON.stringify({
  error: { code: 'no_route', message: 'There is no GET health.', hint: '' }
});

test.each([
  [424, FROM_HUB, 'unreachable'],
  [502, '<html>Bad Gateway</html>', 'unreachable'],
  [503, '', 'unreachable'],
  [504, '<html>Gateway Time-out</html>', 'unreachable'],
  [503, OURS, 'refused'],
  [404, '<html>Not Found</html>', 'missing'],
  [404, NO_JOB, 'refused'],
  [404, NO_ROUTE, 'outdated'],
  [405, NO_ROUTE, 'outdated'],
  [500, '<html>Internal Server Error</html>', 'broken'],
  [200, '<html>Log in</html>', 'broken']
])('an answer %i of %j is %s', async (status, body, failure) => {
  await expect(answering(status, body).getHealth()).rejects.toMatchObject({
    failure
  });
});

test.each([
  ['', (client: Client) => client.submit({ notebook: 'a.ipynb' }, 'key')],
  [' of a file', (client: Client) => client.getResultsFile('night', 'csv')]
])('an answer%s that is cut in its body is none', async (_, call) => {
  const fetch = () => {
    const response = new Response('{"name": "a-aaaa', { status: 201 });
    const cut = () => Promise.reject(new TypeError('network error'));
    return Promise.resolve(
      Object.assign(response, { text: cut, json: cut, blob: cut })
    );
  };
  const client = new Client(ServerConnection.makeSettings({ fetch }));
  await expect(call(client)).rejects.toMatchObject({ failure: 'unreachable' });
});

test('each request has an id of its own', async () => {
  const ids: (string | null)[] = [];
  const fetch = (request: Request) => {
    ids.push(request.headers.get('X-Request-ID'));
    return Promise.resolve(new Response('{}'));
  };
  const settings = ServerConnection.makeSettings({
    fetch: fetch as typeof window.fetch
  });
  const client = new Client(settings);
  await client.getHealth();
  await client.submit({ notebook: 'a.ipynb' }, 'key');
  expect(ids).toEqual([
    expect.stringMatching(/^[0-9a-f]{16}$/),
    expect.stringMatching(/^[0-9a-f]{16}$/)
  ]);
  expect(new Set(ids).size).toBe(2);
});

test('the folder of results that is set goes along with what makes jobs', async () => {
  const sent: unknown[] = [];
  const fetch = async (request: Request) => {
    sent.push(JSON.parse(await request.text()));
    return new Response('{}');
  };
  const settings = ServerConnection.makeSettings({
    fetch: fetch as typeof window.fetch
  });
  let folder = ' results/{notebook}/ ';
  const client = new Client(settings, () => folder);
  const submission = { notebook: 'a.ipynb' };
  await client.checkSubmission(submission);
  await client.submit(submission, 'key');
  await client.submitSweep({ ...submission, runs: [] }, 'key');
  await client.rerun('a-aaaaaaaa', {}, 'key');
  const results = 'results/{notebook}/';
  expect(sent).toEqual([
    { ...submission, results },
    { ...submission, results },
    { ...submission, runs: [], results },
    { results }
  ]);
  folder = ' ';
  await client.submit(submission, 'key');
  expect(sent.at(-1)).toEqual(submission);
});

test('nobody knows whether a controller that is away has taken a submission', () => {
  const trans = nullTranslator.load('jupyter_to_job');
  const failure = (code: string) =>
    new ApiError('refused', 'It is away.', 'Try again.', code);
  expect(errorText(failure('unavailable'), trans)).toBe(
    'It is away. Try again. Sending again is safe: it stays one job.'
  );
  expect(errorText(failure('unavailable'), trans, false)).toBe(
    'It is away. Try again.'
  );
  expect(errorText(failure('refused'), trans)).toBe(
    'Not submitted: It is away. Try again.'
  );
});

test('who is no longer logged in reads what to do, in any language', () => {
  const server = 'XSRF cookie does not match POST argument';
  const error = new ApiError('refused', server, '', 'unauthenticated');
  const english = nullTranslator.load('jupyter_to_job');
  expect(errorText(error, english)).toBe(
    'Not submitted: You are no longer logged in. Log in again in another tab, then try again.'
  );
  const german = { __: (text: string) => `de: ${text}` } as typeof english;
  expect(errorText(error, german, false)).toMatch(/^de: You are .* again\.$/);
});

test('a sweep of which only some jobs were submitted does not pass for none', () => {
  const message = 'Submitted as the group night: 2 of 4 jobs. No room.';
  const error = new ApiError('refused', message, '', 'partly_submitted');
  expect(errorText(error, nullTranslator.load('jupyter_to_job'))).toBe(message);
});

test('an error that only an administrator can mend quotes the id', async () => {
  const body = JSON.stringify({
    error: {
      code: 'unavailable',
      message: 'The disk is full.',
      hint: 'Wait.',
      request_id: 'ab12'
    }
  });
  const error: unknown = await answering(503, body)
    .getHealth()
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ requestId: 'ab12' });
  expect(errorText(error, nullTranslator.load('jupyter_to_job'), false)).toBe(
    'The disk is full. Wait. (Request ab12)'
  );
});

test('what an older controller lacks is not blamed on the server part', async () => {
  const message = 'There is no POST preflight.';
  const hint =
    'The controller is version 0.1.0 and this environment 0.2.0: ' +
    'if that is why, upgrade jupyter-to-job in the controller.';
  const body = JSON.stringify({ error: { code: 'no_route', message, hint } });
  const error: unknown = await answering(404, body)
    .checkSubmission({ notebook: 'a.ipynb' })
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({ failure: 'refused', code: 'no_route' });
  expect(errorText(error, nullTranslator.load('jupyter_to_job'), false)).toBe(
    `${message} ${hint}`
  );
});
