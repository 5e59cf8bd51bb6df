/** Finds for the cells of a notebook the ones of a result that ran the same code. */
import type * as nbformat from '@jupyterlab/nbformat';

/** A code cell, as it matters here. `index` is its place among all cells of its notebook. */
export type CodeCell = {
  index: number;
  id: string | null;
  code: string;
  outputs: nbformat.IOutput[];
  executionCount: number | null;
  isTrusted: boolean;
};

/**
 * A cell of the source with its cell of the result. `same`: the code is the same and was run.
 * `changed`: it is the same cell, with other code. `unrun`: the run did not come to it. `new`: the
 * result has no such cell. `running`: it runs now in the source.
 */
export type Match = {
  kind: 'same' | 'changed' | 'unrun' | 'new' | 'running';
  source: CodeCell;
  result: CodeCell | null;
};

/** The code cells of a notebook, without empty ones. */
export function codeCells(cells: readonly nbformat.ICell[]): CodeCell[] {
  return cells
    .map((cell, index) => ({ cell: cell as nbformat.ICodeCell, index }))
    .filter(({ cell }) => cell.cell_type === 'code')
    .map(({ cell, index }) => ({
      index,
      id: typeof cell.id === 'string' ? cell.id : null,
      code: joined(cell.source).trim(),
      outputs: cell.outputs ?? [],
      executionCount: cell.execution_count ?? null,
      isTrusted: cell.metadata.trusted === true
    }))
    .filter(({ code }) => code !== '');
}

/** Match each cell of the source, in order. No cell of the result is matched twice. */
export function matchCells(
  source: readonly CodeCell[],
  result: readonly CodeCell[]
): Match[] {
  const free = new Set(result);
  const found = new Map<CodeCell, CodeCell>();
  const take = (isMatch: (cell: CodeCell, other: CodeCell) => boolean) => {
    for (const cell of source.filter(each => !found.has(each))) {
      const match = [...free].find(other => isMatch(cell, other));
      if (match !== undefined) {
        found.set(cell, match);
        free.delete(match);
      }
    }
  };
  // A notebook that was saved without ids has other ones in its result.
  take((cell, other) => hasSameId(cell, other) && cell.code === other.code);
  take((cell, other) => cell.code === other.code);
  take(hasSameId);
  return source.map(cell => {
    const match = found.get(cell) ?? null;
    return { kind: kindOf(cell, match), source: cell, result: match };
  });
}

/** The cell of the source that became a cell of the result; null if there is none. */
export function findSource(
  source: readonly CodeCell[],
  result: readonly CodeCell[],
  index: number
): CodeCell | null {
  const matches = matchCells(source, result);
  const match = matches.find(each => each.result?.index === index);
  if (match !== undefined) {
    return match.source;
  }
  // The code was mended, and there are no ids: it stands behind the same cell.
  const isBefore = ({ result: other }: Match) =>
    other !== null && other.index < index;
  const place = matches.map(isBefore).lastIndexOf(true);
  const next = matches[place + 1];
  return next?.result === null ? next.source : null;
}

function hasSameId(cell: CodeCell, other: CodeCell): boolean {
  return cell.id !== null && cell.id === other.id;
}

function kindOf(cell: CodeCell, match: CodeCell | null): Match['kind'] {
  if (match === null) {
    return 'new';
  }
  if (cell.code !== match.code) {
    return 'changed';
  }
  return match.executionCount === null && match.outputs.length === 0
    ? 'unrun'
    : 'same';
}

function joined(source: nbformat.MultilineString): string {
  return Array.isArray(source) ? source.join('') : source;
}
