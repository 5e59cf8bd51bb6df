/** Times and amounts as people say and type them. */
import {
  formatBytes,
  formatDuration,
  formatMemory,
  formatMoment,
  parseCpus,
  parseDuration
} from '../src/ui/format';
import { TRANS } from './fixtures';

describe('words', () => {
  it.each([
    [0.44, '0.4 s'],
    [12, '12 s'],
    [59.7, '1 min'],
    [185, '3 min 5 s'],
    [7200, '2 h'],
    [7805, '2 h 10 min'],
    [356_400, '4 d 3 h'],
    [86_460, '1 d']
  ])('says %d seconds', (seconds, words) => {
    expect(formatDuration(seconds, TRANS)).toBe(words);
  });

  it('says a time of today without its date', () => {
    const now = new Date(2026, 0, 2, 14, 30).getTime();
    const said = (...parts: [number, number, number, number, number]) =>
      formatMoment(new Date(...parts).toISOString(), now);
    expect(said(2026, 0, 2, 9, 5)).toBe('09:05');
    expect(said(2026, 0, 1, 23, 59)).toBe('2026-01-01 23:59');
    expect(said(2025, 0, 2, 9, 5)).toBe('2025-01-02 09:05');
  });

  it.each([
    ['90s', 90],
    ['45m', 2700],
    ['1h30m', 5400],
    ['1d', 86_400],
    ['60', 60],
    ['', null],
    ['0', null],
    ['0m', null],
    ['soon', null],
    ['1.5h', null],
    ['30m1h', null]
  ])('reads the duration "%s"', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it('says amounts', () => {
    expect([512, 3_565_158, 1 << 30].map(formatBytes)).toEqual([
      '512 B',
      '3.4 MiB',
      '1 GiB'
    ]);
    expect(['500m', '2'].map(parseCpus)).toEqual([0.5, 2]);
    expect(['16Gi', '500M', '1024'].map(formatMemory)).toEqual([
      '16 GiB',
      '500 MB',
      '1024 B'
    ]);
  });
});
