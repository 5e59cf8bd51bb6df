/** Formats the command that submits a job from a terminal. */
import type { Job } from './job';

/**
 * The command that submits the same job again from the workspace. `env` is missing: the server does
 * not return it.
 */
export function formatCommandLine(job: Job): string {
  const args = ['jupyter-to-job', 'submit', job.notebook];
  args.push('-f', job.flavor, '-d', job.device);
  for (const [name, value] of Object.entries(job.parameters)) {
    args.push('-p', name, JSON.stringify(value));
  }
  job.inputs.forEach(path => args.push('-i', path));
  const options: [string, string | number | null][] = [
    ['--max-runtime', job.max_runtime],
    ['--priority', job.priority === 0 ? null : job.priority],
    ['--output', job.output]
  ];
  if (job.isolated) {
    args.push('--isolated');
  }
  for (const [option, value] of options) {
    if (value !== null) {
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
