/** Saving before a submission, beside saves that are under way and JupyterLab's own question. */
import { Dialog } from '@jupyterlab/apputils';
import { PromiseDelegate } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { NotebookSaver } from '../src/submit/notebookSaver';

type Context = Parameters<NotebookSaver['save']>[0];

/** An open notebook, whose saves end when a test says so. */
class Notebook {
  readonly saveState = new Signal<this, string>(this);
  readonly disposed = new Signal<this, void>(this);
  readonly saves: PromiseDelegate<void>[] = [];
  readonly model = {
    dirty: false,
    contentChanged: new Signal<object, void>({})
  };

  async save(): Promise<void> {
    const saving = new PromiseDelegate<void>();
    this.saves.push(saving);
    this.saveState.emit('started');
    await saving.promise;
    this.saveState.emit('completed');
  }
}

function open() {
  const saver = new NotebookSaver(null);
  const notebook = new Notebook();
  const context = notebook as unknown as Context;
  saver.watch(context);
  return { saver, notebook, context };
}

const launch = (dialog: Dialog<unknown>) =>
  void dialog.launch().catch(() => undefined); // `flush` rejects it
const settle = () => new Promise(resolve => setTimeout(resolve));

describe('saving a notebook', () => {
  it('waits for a save that is under way', async () => {
    const { saver, notebook, context } = open();
    void notebook.save();
    const saved = saver.save(context);
    await settle();
    expect(notebook.saves).toHaveLength(1);
    notebook.saves[0]!.resolve();
    await settle();
    expect(notebook.saves).toHaveLength(2);
    notebook.saves[1]!.resolve();
    await saved;
  });

  it('happens once at a time, and goes on after a failure', async () => {
    const { saver, notebook, context } = open();
    void notebook.save();
    const failed = expect(saver.save(context)).rejects.toThrow('full');
    const saved = saver.save(context);
    notebook.saves[0]!.resolve();
    await settle();
    expect(notebook.saves).toHaveLength(2);
    notebook.saves[1]!.reject(new Error('full'));
    notebook.saveState.emit('failed');
    await failed;
    await settle();
    expect(notebook.saves).toHaveLength(3);
    notebook.saves[2]!.resolve();
    await saved;
  });

  it.each(['before', 'after'])(
    'waits for no save that began %s a question of JupyterLab',
    async when => {
      const { saver, notebook, context } = open();
      const ask = () => launch(new Dialog({ title: 'File Changed' }));
      if (when === 'after') {
        ask();
      }
      notebook.saveState.emit('started'); // It is cancelled, and reports no end.
      if (when === 'before') {
        ask();
      }
      await settle();
      await saver.waitForRunning(context);
      Dialog.flush();
    }
  );

  it('waits while the dialog of SUBMIT JOB opens', async () => {
    const { saver, notebook, context } = open();
    void notebook.save();
    const dialog = new Dialog({ title: 'SUBMIT JOB' });
    dialog.addClass('jp-ToJobDialog');
    launch(dialog);
    await settle();
    let isOver = false;
    const waited = saver.waitForRunning(context).then(() => {
      isOver = true;
    });
    await settle();
    expect(isOver).toBe(false);
    notebook.saves[0]!.resolve();
    await waited;
    Dialog.flush();
  });

  it('has changes that were made while it was saved, until the next time', async () => {
    const { saver, notebook, context } = open();
    notebook.model.contentChanged.emit();
    expect(saver.hasChanges(context)).toBe(false); // It was loaded.
    void notebook.save();
    notebook.model.contentChanged.emit();
    notebook.saves[0]!.resolve();
    await settle();
    expect(saver.hasChanges(context)).toBe(true);
    const saved = saver.save(context);
    await settle();
    notebook.saves[1]!.resolve();
    await saved;
    expect(saver.hasChanges(context)).toBe(false);
  });

  it('waits for no notebook that was closed', async () => {
    const { saver, notebook, context } = open();
    notebook.saveState.emit('started');
    const waited = saver.waitForRunning(context);
    notebook.disposed.emit();
    await waited;
  });
});
