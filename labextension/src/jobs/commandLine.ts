/** Formats the command that submits a job from a terminal. */
import { choicesOfJob, type Job } from './job';

/**
 * The command that submits the same job again from the workspace. `env` is missing: the server does
 * not return it.
 */
export function formatCommandLine(job: Job): string {
  const choices = choicesOfJob(job);
  const args = ['jupyter-to-job', 'submit', job.notebook];
  args.push('-f', job.flavor, '-d', job.device);
  for (const [name, value] of Object.entries(job.parameters)) {
    args.push('-p', name, JSON.stringify(value));
  }
  choices.inputs?.forEach(path => args.push('-i', path));
  if (choices.isolated) {
    args.push('--isolated');
  }
  for (const [option, value] of [
    ['--max-runtime', choices.max_runtime],
    ['--priority', choices.priority],
    ['--output', choices.output],
    ['--name', choices.name]
  ] as const) {
    if (value !== undefined) {
      args.push(option, String(value));
    }
  }
  return args.map(quote).join(' ');
}

/** Quote a word for a POSIX shell. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", `'"'"'`)}'`;
}
