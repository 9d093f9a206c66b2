import { dirname } from 'node:path';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff } from '../../runtime/time.ts';
import { watchDirectory } from '../watch-directory.ts';
import { listedContainers } from './names.ts';
import type { PodResourcesAnswer, Reading } from './view.ts';

/** Seconds between two rounds: the kubelet answers 100 calls a second to everybody together. */
const LEAST_INTERVAL = 0.05;
/** Seconds after which a round is made without any cause. */
const RESYNC = 60;
const DEADLINE = 5;

export interface PodResourcesSourceDeps {
  readonly client: PodResourcesClient;
  readonly socketPath: string;
  readonly log: Logger;
  /**
   * `asked`: when the round began, in monotonic milliseconds. Returns whether the answer will do; if not (a kubelet
   * that is still starting), the kubelet is asked again soon.
   */
  readonly onReading: (reading: Reading<PodResourcesAnswer>, asked: number) => boolean;
  /** Called with the code of each failed round. */
  readonly onFailure: (code: string) => void;
  readonly signal: AbortSignal;
}

export interface PodResourcesSource {
  /** Asks for a round soon. Any number of requests before it starts are one. */
  refresh(): void;
}

/** Asks the kubelet when something may have changed, and again with growing pauses while it does not answer. */
export function followPodResources(deps: PodResourcesSourceDeps): PodResourcesSource {
  const { client, socketPath, log, signal } = deps;
  const backoff = new Backoff({ first: 0.2, most: 10 });
  let last: Reading<PodResourcesAnswer> = { value: undefined, problem: undefined };
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Number.POSITIVE_INFINITY;
  let running = false;
  let wanted = false;
  let earliest = 0;
  let asked = 0;

  const schedule = (seconds: number) => {
    const at = Math.max(performance.now() + seconds * 1000, earliest);
    if (signal.aborted || at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => void round(), at - performance.now());
  };

  const round = async (): Promise<void> => {
    dueAt = Number.POSITIVE_INFINITY;
    running = true;
    wanted = false;
    asked = performance.now();
    let satisfied = false;
    try {
      const answer = await ask(client, signal);
      if (last.problem !== undefined) log.info({ socketPath }, 'the kubelet answers again');
      satisfied = publish({ value: answer, problem: undefined });
      if (satisfied) backoff.reset();
    } catch (error) {
      if (!signal.aborted) fail(error as Error);
    }
    running = false;
    earliest = performance.now() + LEAST_INTERVAL * 1000;
    schedule(satisfied ? RESYNC : backoff.next());
    if (wanted) schedule(0);
  };

  const publish = (reading: Reading<PodResourcesAnswer>): boolean => {
    last = reading;
    return !signal.aborted && deps.onReading(reading, asked);
  };

  const fail = (error: Error) => {
    deps.onFailure(error instanceof PlumblineError ? error.code : 'failed');
    if (error.message === last.problem) return;
    log.warn({ socketPath, err: error }, 'the kubelet cannot be asked, keeping what was last known; trying again');
    publish({ value: last.value, problem: error.message });
  };

  const refresh = () => {
    if (running) wanted = true;
    else schedule(0);
  };

  watchDirectory({ path: dirname(socketPath), signal, onChange: refresh });
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  refresh();
  return { refresh };
}

/** One round: what may be given, then who holds what. */
async function ask(client: PodResourcesClient, signal: AbortSignal): Promise<PodResourcesAnswer> {
  const limits = { signal, deadlineSeconds: DEADLINE };
  const { cpuIds } = await client.allocatable(limits);
  const pods = await client.list(limits);
  return { allocatable: CpuSet.of(cpuIds), listed: listedContainers(pods) };
}
