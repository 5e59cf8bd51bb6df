/** How to submit a job again from a terminal. */
import type { Job } from './job';

/** The command that submits the same again from the workspace; `env` is known to nobody. */
export function formatCommandLine(job: Job): string {
  const words = ['jupyter-to-job', 'submit', job.notebook];
  words.push('-f', job.flavor, '-d', job.device);
  for (const [name, value] of Object.entries(job.parameters)) {
    words.push('-p', name, JSON.stringify(value));
  }
  job.inputs.forEach(path => words.push('-i', path));
  const options: [string, string | number | null][] = [
    ['--max-runtime', job.max_runtime],
    ['--priority', job.priority === 0 ? null : job.priority],
    ['--output', job.output]
  ];
  if (job.isolated) {
    words.push('--isolated');
  }
  for (const [option, value] of options) {
    if (value !== null) {
      words.push(option, String(value));
    }
  }
  return words.map(quote).join(' ');
}

/** A word as a POSIX shell takes it for one. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", `'"'"'`)}'`;
}
