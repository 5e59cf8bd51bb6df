/** Clean Up: which results are shown, and what becomes of them. */
import type { OldResult, Removal } from '../src/api';
import { CleanUpModel, type ICleanUpApi } from '../src/cleanUp/model';

const result = (job: string): OldResult => ({
  job,
  notebook: 'a.ipynb',
  path: `${job}.ipynb`,
  size: 1000,
  finished: '2026-11-01T10:00:00.000Z'
});

test('only the answer to the latest question is shown', async () => {
  const answers: ((results: OldResult[]) => void)[] = [];
  const asked: unknown[] = [];
  const model = new CleanUpModel({
    listOldResults: (...args: unknown[]) => {
      asked.push(args);
      return new Promise(resolve => answers.push(resolve));
    }
  } as unknown as ICleanUpApi);
  const first = model.set({});
  const second = model.set({ age: '7d', keepsNewest: false });
  expect(model.results).toBeNull();
  answers[1]!([result('b')]);
  answers[0]!([result('a')]);
  await Promise.all([first, second]);
  expect(asked).toEqual([
    ['30d', 1],
    ['7d', 0]
  ]);
  expect(model.results).toEqual([result('b')]);
  expect(model.size).toBe(1000);
});

test('one that cannot be removed does not stop the others', async () => {
  const removals: Record<string, Removal> = {
    a: { removed: ['a.ipynb', 'a/out.txt'], size: 1200, changed: [] },
    c: { removed: [], size: 0, changed: ['c.ipynb'] }
  };
  const model = new CleanUpModel({
    listOldResults: () => Promise.resolve(['a', 'b', 'c'].map(result)),
    removeResult: (name: string) =>
      name in removals
        ? Promise.resolve(removals[name]!)
        : Promise.reject(new Error('read-only'))
  });
  await model.set({});
  expect(await model.remove()).toEqual({
    removed: 1,
    size: 1200,
    changed: 1,
    errors: [new Error('read-only')]
  });
});

test('an error is shown, and the next question forgets it', async () => {
  let fails = true;
  const model = new CleanUpModel({
    listOldResults: () =>
      fails ? Promise.reject(new Error('down')) : Promise.resolve([])
  } as unknown as ICleanUpApi);
  await model.set({});
  expect(model.error).toEqual(new Error('down'));
  fails = false;
  await model.set({});
  expect([model.error, model.results]).toEqual([null, []]);
});
