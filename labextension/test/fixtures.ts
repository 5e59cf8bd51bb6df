/** What a server may answer, complete and small, for tests to change what they are about. */
import { nullTranslator } from '@jupyterlab/translation';

import type { Catalog, Flavor, JobRecord, Preflight, Wait } from '../src/api';
import type { Job } from '../src/jobs/job';

export const TRANS = nullTranslator.load('jupyter_to_job');

/** Wait for what comes soon; whether it came is for the test to say. */
export async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !condition(); tries += 1) {
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

export function job(changes: Partial<Job> = {}): Job {
  return {
    name: 'study-aaaaaaaa',
    owner: 'somebody',
    notebook: 'study.ipynb',
    flavor: 'small',
    device: 'cpu',
    parameters: {},
    inputs: [],
    isolated: false,
    output: null,
    max_runtime: null,
    priority: 0,
    backend: 'local',
    state: 'queued',
    cancel_requested: false,
    reason: null,
    message: null,
    position: null,
    progress: { cells_done: 0, cells_total: 0, current_cell: null, cells: 0 },
    delivery: { state: 'pending', path: null, message: null },
    usage: null,
    submitted: null,
    started: null,
    finished: null,
    journal: 0,
    mounts: [],
    left_behind: [],
    events: null,
    notifications: [],
    asked: null,
    group: null,
    rerun_of: null,
    metrics: null,
    wait: null,
    ...changes
  };
}

/** What a job waits for whose start is not said any more in ten seconds. */
export function overdueSoon(): Wait {
  return {
    time: new Date(Date.now() - 50_000).toISOString(),
    needs: [],
    before: 2,
    start: { low: 0, likely: 0, high: 0, runs: 3 },
    run: null
  };
}

export const RECORD: JobRecord = {
  snapshot_sha256: 'a'.repeat(64),
  result_sha256: null,
  kernel: 'python3',
  interpreter: '/usr/bin/python3',
  host: 'here',
  image: null,
  env: ['API_KEY'],
  variables: ['HOME', 'PATH'],
  inputs: [],
  files: [],
  retention: 7 * 86_400,
  delivered: null,
  kept_until: null,
  cleared: null,
  cleared_reason: null,
  exports: ['html']
};

export function flavor(changes: Partial<Flavor> = {}): Flavor {
  return {
    title: '',
    description: '',
    cpu: '1',
    memory: '2Gi',
    gpus: 0,
    shm: null,
    max_runtime: null,
    devices: ['cpu'],
    allowed: true,
    unavailable_reason: null,
    ...changes
  };
}

const DEVICE = {
  title: '',
  description: '',
  autoscaled: false,
  same_as: null,
  free: null,
  total: null
};

export const CATALOG: Catalog = {
  default: { flavor: 'small', device: 'cpu' },
  flavors: {
    small: flavor(),
    gpu: flavor({ gpus: 1, devices: ['t4', 'part'] }),
    huge: flavor({ unavailable_reason: 'Needs 64 CPUs.' }),
    team: flavor({ allowed: false })
  },
  devices: {
    cpu: { ...DEVICE, isolation: null },
    t4: { ...DEVICE, isolation: 'full' },
    part: { ...DEVICE, isolation: 'software' }
  }
};

export function preflight(changes: Partial<Preflight> = {}): Preflight {
  return {
    problems: [],
    parameters: [],
    inputs: [],
    suggested: [],
    input_cap: null,
    ignored: 0,
    isolated: false,
    mounts: [],
    kernel: 'python3',
    image: null,
    plan: null,
    wait: null,
    results: null,
    ...changes
  };
}
