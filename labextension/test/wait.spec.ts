import { nullTranslator } from '@jupyterlab/translation';

import type { Wait } from '../src/api';
import { noteText } from '../src/ui/statusText';
import {
  forecastText,
  roundEstimate,
  startTimeText,
  sweepForecastText,
  waitReason
} from '../src/ui/waitText';
import { job } from './fixtures';

const trans = nullTranslator.load('');

const WAIT: Wait = {
  time: '2026-11-24T10:00:00.000Z',
  needs: [{ resource: 'cpu', amount: '2', free: '1' }],
  before: 28,
  start: { low: 480, likely: 722, high: 1190, runs: 9 },
  run: { low: 61, likely: 62, high: 63, runs: 1 }
};

it('says why a job waits', () => {
  expect(waitReason(WAIT, trans)).toBe(
    'Needs 2 CPUs; free now: 1. 28 jobs are before it.'
  );
  const memory = { resource: 'memory', amount: '8589934592', free: '0' };
  expect(waitReason({ ...WAIT, needs: [memory], before: 1 }, trans)).toBe(
    'Needs 8 GiB of memory; free now: 0 B. 1 job is before it.'
  );
  expect(waitReason({ ...WAIT, needs: [], before: 0 }, trans)).toBeNull();
});

it('says estimates with their range, and what they come from', () => {
  expect(forecastText(WAIT, trans)).toBe(
    'Needs 2 CPUs; free now: 1. 28 jobs are before it. ' +
      'Starts in about 10 min (8 min to 20 min), estimated from 9 earlier runs. ' +
      'Runs about 1 min, estimated from 1 earlier run.'
  );
  const unknown = { ...WAIT, needs: [], before: 0, start: null, run: null };
  expect(forecastText(unknown, trans)).toBe('');
  const text = startTimeText(WAIT, Date.parse(WAIT.time), trans);
  expect(text).toMatch(
    /^Starts at about \d\d:10 \(\d\d:08 to \d\d:20\), estimated from 9 earlier runs\.$/
  );
  expect(startTimeText({ ...WAIT, start: null }, 0, trans)).toBeNull();
  const latest = Date.parse(WAIT.time) + WAIT.start!.high * 1000;
  expect(startTimeText(WAIT, latest + 59_000, trans)).toBe(text);
  expect(startTimeText(WAIT, latest + 61_000, trans)).toBeNull();
});

it('speaks of several jobs before they are sent', () => {
  expect(sweepForecastText(WAIT, trans)).toBe(
    'Each needs 2 CPUs; free now: 1. 28 jobs are before them. ' +
      'The first starts in about 10 min (8 min to 20 min), estimated from 9 earlier runs. ' +
      'Each runs about 1 min, estimated from 1 earlier run.'
  );
  const unknown = { ...WAIT, needs: [], before: 0, start: null, run: null };
  expect(sweepForecastText(unknown, trans)).toBe('');
});

it('rounds estimates', () => {
  const rounded = [0, 7, 61, 722, 4000, 40_000, 200_000].map(roundEstimate);
  expect(rounded).toEqual([1, 5, 60, 600, 4200, 39_600, 194_400]);
});

it('is a note of queued jobs only', () => {
  const queued = job({ state: 'queued', position: 29, wait: WAIT });
  expect(noteText(queued, trans)).toContain('28 jobs are before it.');
  expect(noteText({ ...queued, state: 'running' }, trans)).toBeNull();
});
