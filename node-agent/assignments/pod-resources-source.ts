import { dirname } from 'node:path';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { cut } from '../../model/brief.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { Backoff } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { MOST_ENTRIES } from './checkpoint.ts';
import { listedContainers } from './names.ts';
import type { PodResourcesAnswer, Reading } from './view.ts';

/** Minimum seconds between two rounds: the kubelet answers 100 calls a second for all its clients together. */
const LEAST_INTERVAL = 0.05;
/** Seconds until the next round after a usable answer that is not complete yet. */
const LATER = 60;
/** Seconds until the next round where no other source reports changes. */
const POLL = 1;
const DEADLINE = 5;
/** Maximum length of a kubelet error, in characters. */
const LONGEST_PROBLEM = 300;

/**
 * What the agent does after an answer:
 * - `done`: no further query until the checkpoint changes;
 * - `later`: the answer is usable, but not complete;
 * - `poll`: no checkpoint reports changes, so query at intervals;
 * - `soon`: the answer is not usable (a kubelet that is still starting).
 */
export type AnswerVerdict = 'done' | 'later' | 'poll' | 'soon';

export interface PodResourcesSourceDeps {
  readonly client: PodResourcesClient;
  readonly socketPath: string;
  readonly log: Logger;
  /** `asked`: when the round began, in monotonic milliseconds. Returns the next step. */
  readonly onReading: (reading: Reading<PodResourcesAnswer>, asked: number) => AnswerVerdict;
  /** Called with the code of each failed round. */
  readonly onFailure: (code: string) => void;
  readonly signal: AbortSignal;
}

export interface PodResourcesSource {
  /** Requests a round soon. Several requests before it starts cause one round. */
  refresh(): void;
}

/** Queries the kubelet after possible changes, and with increasing pauses while it does not answer. */
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
    let verdict: AnswerVerdict = 'soon';
    try {
      const answer = await ask(client, signal);
      if (last.problem !== undefined) log.info({ socketPath }, 'kubelet reachable again');
      verdict = publish({ value: answer, problem: undefined });
      if (verdict !== 'soon') backoff.reset();
    } catch (error) {
      if (!signal.aborted) fail(error as Error);
    }
    running = false;
    earliest = performance.now() + LEAST_INTERVAL * 1000;
    if (verdict === 'soon') schedule(backoff.next());
    else if (verdict !== 'done') schedule(verdict === 'poll' ? POLL : LATER);
    if (wanted) schedule(0);
  };

  const publish = (reading: Reading<PodResourcesAnswer>): AnswerVerdict => {
    last = reading;
    return signal.aborted ? 'done' : deps.onReading(reading, asked);
  };

  const fail = (error: Error) => {
    deps.onFailure(error instanceof PlumblineError ? error.code : 'failed');
    const problem = cut(error.message, LONGEST_PROBLEM);
    if (problem === last.problem) return;
    if (error.message.includes('GetAllocatableResources')) log.warn({ socketPath }, 'GetAllocatableResources failed');
    log.warn({ socketPath, problem }, 'querying the kubelet failed; keeping the last answer and retrying');
    publish({ value: last.value, problem });
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

/** One round: the allocatable CPUs, then the containers that hold CPUs. */
async function ask(client: PodResourcesClient, signal: AbortSignal): Promise<PodResourcesAnswer> {
  const limits = { signal, deadlineSeconds: DEADLINE };
  const { cpuIds } = await client.allocatable(limits);
  const pods = await client.list(limits);
  return { allocatable: CpuSet.of(cpuIds), listed: listedContainers(pods, MOST_ENTRIES) };
}
