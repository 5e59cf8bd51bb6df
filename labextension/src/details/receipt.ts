/** The receipts of cells as columns with bars, to be sorted. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { CellReceipt } from '../api';
import { formatBytes, formatDuration } from '../ui/format';

export type ColumnId = 'wall' | 'cpu' | 'memory_peak' | 'gpu';

export type ReceiptColumn = {
  id: ColumnId;
  label: string;
  /** The amount by which cells are compared; null where it is not known. */
  amount: (cell: CellReceipt) => number | null;
  text: (cell: CellReceipt) => string;
};

/** The columns that have a figure. */
export function receiptColumns(
  cells: readonly CellReceipt[],
  trans: TranslationBundle
): ReceiptColumn[] {
  const duration = (seconds: number | null) =>
    seconds === null ? '–' : durationText(seconds, trans);
  const bytes = (amount: number | null) =>
    amount === null ? null : formatBytes(amount);
  const columns: ReceiptColumn[] = [
    {
      id: 'wall',
      label: trans.__('Time'),
      amount: ({ wall }) => wall,
      text: ({ wall }) => duration(wall)
    },
    {
      id: 'cpu',
      label: trans.__('CPU time'),
      amount: ({ cpu }) => cpu,
      text: ({ cpu }) => duration(cpu)
    },
    {
      id: 'memory_peak',
      label: trans.__('Peak memory'),
      amount: ({ memory_peak }) => memory_peak,
      text: ({ memory_peak }) => bytes(memory_peak) ?? '–'
    },
    {
      id: 'gpu',
      label: trans.__('GPU'),
      amount: ({ gpu_utilisation, gpu_memory_peak }) =>
        gpu_utilisation ?? (gpu_memory_peak === null ? null : 0),
      text: ({ gpu_utilisation: share, gpu_memory_peak: memory }) =>
        [
          share !== null && trans.__('%1 %', Math.round(share * 100)),
          bytes(memory)
        ]
          .filter(Boolean)
          .join(' · ') || '–'
    }
  ];
  return columns.filter(({ amount }) =>
    cells.some(cell => amount(cell) !== null)
  );
}

/** Most cells take so little that one decimal does not tell them apart. */
function durationText(seconds: number, trans: TranslationBundle): string {
  if (seconds >= 9.995) {
    return formatDuration(seconds, trans);
  }
  return trans.__('%1 s', seconds < 0.005 ? '<0.01' : seconds.toFixed(2));
}

/** Each cell's share of the largest amount, from 0 to 1; null where it is not known. */
export function shares(
  cells: readonly CellReceipt[],
  { amount, id }: ReceiptColumn
): (number | null)[] {
  const amounts = cells.map(amount);
  const known = amounts.filter(each => each !== null);
  // A GPU's utilisation is a share itself.
  const most = id === 'gpu' ? 1 : Math.max(...known, 0);
  return amounts.map(each =>
    each === null ? null : most === 0 ? 0 : Math.min(each / most, 1)
  );
}

/** The indices of cells, the largest amounts first; in their order without a column. */
export function sortedIndices(
  cells: readonly CellReceipt[],
  column: ReceiptColumn | null
): number[] {
  const indices = cells.map((_, index) => index);
  if (column === null) {
    return indices;
  }
  const amountAt = (index: number) => column.amount(cells[index]!) ?? -1;
  return indices.sort((a, b) => amountAt(b) - amountAt(a) || a - b);
}
