/** Saves the result as a document: HTML or PDF, with or without the code. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useState } from 'react';

import type { JobRecord } from '../api';
import { showError } from '../ui/errors';
import { saveFile } from '../ui/saveFile';
import type { DetailsModel } from './model';
import { Section } from './parts';

type Format = JobRecord['exports'][number];
type Props = {
  model: DetailsModel;
  formats: readonly Format[];
  trans: TranslationBundle;
};

export function ExportSection({
  model,
  formats,
  trans
}: Props): ReactElement | null {
  const [isBusy, setBusy] = useState(false);
  const save = async (format: Format, code: boolean) => {
    setBusy(true);
    try {
      const content = await model.api.getExport(model.name, format, code);
      saveFile(content, `${model.name}.${format}`, trans);
    } catch (error) {
      showError(error, trans, false);
    } finally {
      setBusy(false);
    }
  };
  const button = (format: Format, code: boolean, label: string) => (
    <button
      key={label}
      className="jp-mod-styled jp-mod-reject"
      aria-disabled={isBusy}
      onClick={() => (isBusy ? undefined : void save(format, code))}
    >
      {label}
    </button>
  );
  const hasBegun = Boolean(model.job?.started);
  return formats.length === 0 || !hasBegun ? null : (
    <Section title={trans.__('Export')}>
      <div className="jp-ToJob-details-actions">
        {formats.flatMap(format => {
          const kind = format.toUpperCase();
          return [
            button(format, true, trans.__('%1 with Code', kind)),
            button(format, false, trans.__('%1 without Code', kind))
          ];
        })}
      </div>
      <p role="status">
        {isBusy
          ? trans.__('The document is being made…')
          : !formats.includes('pdf') &&
            trans.__(
              'A PDF needs XeLaTeX and Pandoc, or Playwright, on the server. Every browser prints HTML to a PDF.'
            )}
      </p>
    </Section>
  );
}
