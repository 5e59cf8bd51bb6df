/** What the dialog of a rerun asks and sends. */
import { ServerConnection } from '@jupyterlab/services';

import { SubmitModel } from '../src/dialog/model';
import { Client, type IDialogApi, type IJournalApi } from '../src/jobs/client';
import type { Changes, Job } from '../src/jobs/job';
import { createRerunSource } from '../src/submit/rerunSource';
import type { IJobs } from '../src/tokens';
import { job, TRANS } from './fixtures';

const ASKED = {
  inputs: [],
  max_runtime: null,
  name: null,
  output: null,
  group_limit: null
};
const API = { getNotebook: () => Promise.reject(new Error()) };

/** A rerun of a job, and what is sent of it. */
async function rerunOf(isolated: boolean, changes: Partial<Job> = {}) {
  const sent: Changes[] = [];
  const rerun = (_: string, body: Changes) => {
    sent.push(body);
    return Promise.resolve(job());
  };
  const source = await createRerunSource(
    job({ asked: { ...ASKED, isolated }, ...changes }),
    { rerun } as unknown as IJobs,
    API as unknown as IJournalApi,
    TRANS
  );
  return { source, sent };
}

describe('a rerun', () => {
  it.each([true, false])('asks with isolation %s, as it will run', async is => {
    const { source } = await rerunOf(is);
    expect(source.toSubmission().isolated ?? false).toBe(is);
  });

  it('loads no outputs of its job', async () => {
    const urls: string[] = [];
    const fetch = (request: Request) => {
      urls.push(request.url);
      return Promise.resolve(new Response('{"cells": []}'));
    };
    const settings = ServerConnection.makeSettings({
      fetch: fetch as typeof window.fetch
    });
    const api = new Client(settings);
    await createRerunSource(job(), {} as IJobs, api, TRANS);
    expect(urls).toEqual([
      expect.stringMatching(/\/notebook\?outputs=false\b/)
    ]);
  });

  it('is held to the plan that was told', async () => {
    const { source, sent } = await rerunOf(false);
    await source.submit({}, 'key', { folders: 'a' });
    await source.submit({}, 'key', null); // an older server tells none
    expect(sent).toEqual([{ plan: { folders: 'a' } }, {}]);
  });

  it('leaves to the server the parameters that stay as they were', async () => {
    const user_id = JSON.parse('1234567890123456789') as number;
    const parameters = { user_id, rate: 2, layers: [1, 2] };
    const { source, sent } = await rerunOf(false, { parameters });
    const model = new SubmitModel(source, {} as IDialogApi, TRANS);
    expect(model.isBlocked).toBe(false); // nothing that was rounded is sent
    await source.submit({ parameters, flavor: 'big' }, 'key');
    const changed = { user_id, layers: [1], depth: null };
    await source.submit({ parameters: changed }, 'other key');
    expect(sent).toEqual([
      { flavor: 'big' },
      { parameters: { layers: [1], depth: null }, unset: ['parameters.rate'] }
    ]);
  });

  it('takes back what was emptied of the job’s choices', async () => {
    const asked = {
      ...ASKED,
      isolated: false,
      name: 'big',
      max_runtime: 60,
      output: 'runs/'
    };
    const { source, sent } = await rerunOf(false, { asked, priority: 50 });
    await source.submit({}, 'key');
    await source.submit({ name: 'big', priority: 1 }, 'other key');
    const unset = ['max_runtime', 'output'];
    expect(sent).toEqual([
      { priority: 0, unset: [...unset, 'name'] },
      { name: 'big', priority: 1, unset }
    ]);
  });

  it('knows the folder of its job, where that was nobody’s wish', async () => {
    const sourceOf = (output: string | null) =>
      createRerunSource(
        job({
          output: 'runs/study/',
          asked: { ...ASKED, output, isolated: false }
        }),
        {} as IJobs,
        API as unknown as IJournalApi,
        TRANS
      );
    const source = await sourceOf(null);
    expect(source.initialChoices.output).toBeUndefined();
    expect(source.resultsFolder).toBe('runs/study/');
    const asked = await sourceOf('runs/study/');
    expect(asked.initialChoices.output).toBe('runs/study/');
    expect(asked.resultsFolder).toBeUndefined();
  });
});
