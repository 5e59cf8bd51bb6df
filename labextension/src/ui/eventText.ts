/** The events of a cluster in plain words. */
import type { TranslationBundle } from '@jupyterlab/translation';

/** What an event with this reason says; the reason itself if this version does not know it. */
export function eventText(reason: string, trans: TranslationBundle): string {
  const texts: Record<string, string> = {
    SuccessfulCreate: trans.__('Its pod was created.'),
    FailedCreate: trans.__('Its pod is refused.'),
    Suspended: trans.__('It waits in the cluster’s queue.'),
    Resumed: trans.__('It has left the cluster’s queue.'),
    FailedScheduling: trans.__('No machine can take it now.'),
    Scheduled: trans.__('A machine takes it.'),
    TriggeredScaleUp: trans.__('A machine is being added for it.'),
    NotTriggerScaleUp: trans.__('No machine can be added for it.'),
    Preempted: trans.__('It had to make room for a more urgent job.'),
    Pulling: trans.__('Its image is being fetched.'),
    Pulled: trans.__('Its image is there.'),
    Failed: trans.__('Its image cannot be had, or a container did not start.'),
    ErrImageNeverPull: trans.__('Its image is not on the machine.'),
    BackOff: trans.__('It is tried again after a while.'),
    FailedMount: trans.__('A volume cannot be mounted.'),
    FailedAttachVolume: trans.__('A volume cannot be attached.'),
    FailedCreatePodSandBox: trans.__('The machine cannot start it.'),
    Created: trans.__('A container was made.'),
    Started: trans.__('A container has started.'),
    Unhealthy: trans.__('It is not ready yet.'),
    Killing: trans.__('A container is being stopped.'),
    Evicted: trans.__('Its machine ran short of something and ended it.'),
    NodeNotReady: trans.__('Its machine does not answer.'),
    TaintManagerEviction: trans.__('Its machine is being given up.')
  };
  return texts[reason] ?? reason;
}
