/** The lines in which two texts differ. */

/** A line with what it is: in both, only in the first text, or only in the second. */
export type DiffLine = { kind: ' ' | '-' | '+'; text: string };

/** The most pairs of lines that are compared; beyond that all lines count as different. */
const MAX_PAIRS = 1_000_000;

/** Compare two texts line by line, by their longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const lengths = commonLengths(old, now);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (lengths !== null && i < old.length && old[i] === now[j]) {
      lines.push({ kind: ' ', text: old[i]! });
      i += 1;
      j += 1;
    } else if (
      i < old.length &&
      (j >= now.length ||
        lengths === null ||
        lengths[i + 1]![j]! >= lengths[i]![j + 1]!)
    ) {
      lines.push({ kind: '-', text: old[i++]! });
    } else {
      lines.push({ kind: '+', text: now[j++]! });
    }
  }
  return lines;
}

/** How many lines the ends of two texts have in common, from each pair of lines on. */
function commonLengths(
  old: readonly string[],
  now: readonly string[]
): Uint32Array[] | null {
  if (old.length * now.length > MAX_PAIRS) {
    return null;
  }
  const lengths = Array.from(
    { length: old.length + 1 },
    () => new Uint32Array(now.length + 1)
  );
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i]![j] =
        old[i] === now[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  return lengths;
}
