/** Scales of a plot: where a value lies between 0 and 1, and at which values there are ticks. */

export type Scale = {
  /** The place of a value, from 0 to 1. */
  place: (value: number) => number;
  ticks: { value: number; text: string }[];
  isLogarithmic: boolean;
};

/** How many ticks a linear scale has, about. */
const TICKS = 5;

/** Values that reach over so many times their smallest one are shown by their logarithms. */
const WIDE = 50;

/** Make a scale of numbers: a logarithmic one if all are positive and far apart. */
export function createScale(values: readonly number[]): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (values.length === 0) {
    return { place: () => 0.5, ticks: [], isLogarithmic: false };
  }
  return low > 0 && high / low >= WIDE
    ? createLogarithmic(low, high)
    : createLinear(low, high);
}

/** Make a scale of texts, which are the ticks, each at a place of its own. */
export function createOrdinal(texts: readonly string[]): {
  place: (text: string) => number;
  ticks: { value: number; text: string }[];
} {
  const places = new Map(
    [...new Set(texts)].map((text, index) => [text, index])
  );
  const place = (text: string) =>
    ((places.get(text) ?? 0) + 0.5) / Math.max(places.size, 1);
  const ticks = [...places.keys()].map(text => ({ value: place(text), text }));
  return { place, ticks };
}

function createLinear(low: number, high: number): Scale {
  // A single value lies in the middle.
  const room = high > low ? (high - low) * 0.05 : Math.abs(high) * 0.1 || 1;
  const [start, end] = [low - room, high + room];
  const step = niceStep((end - start) / TICKS);
  const ticks = [];
  for (
    let index = Math.ceil(start / step);
    index * step <= end && ticks.length < 20;
    index += 1
  ) {
    ticks.push({ value: index * step, text: formatTick(index * step) });
  }
  return {
    place: value => (value - start) / (end - start),
    ticks,
    isLogarithmic: false
  };
}

function createLogarithmic(low: number, high: number): Scale {
  const room = Math.log10(high / low) * 0.05;
  const [start, end] = [Math.log10(low) - room, Math.log10(high) + room];
  const ticks = [];
  const step = Math.max(1, Math.round((end - start) / TICKS));
  for (let power = Math.ceil(start); power <= end; power += step) {
    ticks.push({ value: 10 ** power, text: formatTick(10 ** power) });
  }
  return {
    place: value => (Math.log10(value) - start) / (end - start),
    ticks,
    isLogarithmic: true
  };
}

/** 1, 2 or 5 times a power of ten, not less than a step. */
function niceStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find(each => each * power >= step * 0.999);
  return (factor ?? 10) * power;
}

/** A value at a tick. */
export function formatTick(value: number): string {
  const rounded = Number(value.toPrecision(10));
  const size = Math.abs(rounded);
  return size !== 0 && (size >= 1e6 || size < 1e-3)
    ? rounded.toExponential().replace('e+', 'e')
    : String(rounded);
}
