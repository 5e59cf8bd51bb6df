/** What the client makes of answers that are none of ours. */
import { ServerConnection } from '@jupyterlab/services';

import { Client } from '../src/jobs/client';

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
