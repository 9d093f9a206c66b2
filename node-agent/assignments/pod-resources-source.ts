import { dirname, join } from 'node:path';
import { DEVICE_CHECKPOINT_FILE } from '../../kube/kubelet-api/device-checkpoint.ts';
import { PLUGIN_DIRECTORY } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut, PlumblineError } from '../../model/errors.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff } from '../../runtime/time.ts';
import { readBounded } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { MAX_ENTRIES } from './checkpoint.ts';
import { claimNames } from './cpu-claims.ts';
import {
  countDevices,
  devicesOfPods,
  type ListedDevices,
  MAX_DEVICE_CHECKPOINT_BYTES,
  type PodWithDevices,
} from './devices.ts';
import {
  MAX_MEMORY_CHECKPOINT_BYTES,
  MEMORY_CHECKPOINT_FILE,
  type MemoryReading,
  type PodWithMemory,
  readMemoryState,
} from './memory-checkpoint.ts';
import { listedContainers, type PodResourcesAnswer, type Reading } from './view.ts';

/** Minimum seconds between two rounds: the kubelet answers 100 calls a second for all its clients together. */
const MIN_INTERVAL_SECONDS = 0.05;
/** Seconds until the next round after a usable answer: most changes come with a change of a file. */
const RESYNC_SECONDS = 30;
/** Seconds in which changes of plugins and of the memory manager's state are collected into one round. */
const DEBOUNCE_SECONDS = 0.5;
/** Seconds until the next round where no other source reports changes. */
const POLL_SECONDS = 1;
const DEADLINE_SECONDS = 5;
/** Maximum length of a kubelet error, in characters. */
const MAX_PROBLEM_CHARACTERS = 300;

/** `later`: usable; `poll`: no checkpoint reports changes; `soon`: not usable (a kubelet that is still starting). */
export type AnswerVerdict = 'later' | 'poll' | 'soon';

export interface PodResourcesSourceDeps {
  readonly client: PodResourcesClient;
  readonly kubeletDir: string;
  readonly socketPath: string;
  readonly podsWithCpus: () => ReadonlySet<string>;
  readonly log: AgentLogger;
  /** `roundStartedAt`: in monotonic milliseconds. Returns the next step. */
  readonly onReading: (reading: Reading<PodResourcesAnswer>, roundStartedAt: number) => AnswerVerdict;
  readonly onFailure: (code: string) => void;
  readonly signal: AbortSignal;
}

/** Queries the kubelet after possible changes, and with increasing pauses while it does not answer. */
export function followPodResources(deps: PodResourcesSourceDeps) {
  const { kubeletDir, socketPath, log, signal } = deps;
  const backoff = new Backoff({ first: 0.2, most: 10 });
  const problems = new ProblemLog(log, { socketPath });
  let last: Reading<PodResourcesAnswer> = { value: undefined, problem: undefined };
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Number.POSITIVE_INFINITY;
  let running = false;
  let isRequested = false;
  let earliest = 0;
  let roundStartedAt = 0;

  const schedule = (seconds: number) => {
    const at = Math.max(performance.now() + seconds * 1000, earliest);
    if (signal.aborted || at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => void round(), at - performance.now());
  };

  const publish = (reading: Reading<PodResourcesAnswer>): AnswerVerdict => {
    last = reading;
    return signal.aborted ? 'later' : deps.onReading(reading, roundStartedAt);
  };

  const fail = (error: Error) => {
    deps.onFailure(error instanceof PlumblineError ? error.code : 'failed');
    const problem = cut(error.message, MAX_PROBLEM_CHARACTERS);
    if (problem === last.problem) return;
    problems.failed(problem, 'querying the kubelet failed; keeping the last answer and retrying');
    publish({ value: last.value, problem });
  };

  async function round(): Promise<void> {
    dueAt = Number.POSITIVE_INFINITY;
    if (running) {
      isRequested = true;
      return;
    }
    running = true;
    isRequested = false;
    roundStartedAt = performance.now();
    let verdict: AnswerVerdict = 'soon';
    try {
      const answer = await query(deps);
      problems.recovered();
      verdict = publish({ value: answer, problem: undefined });
      if (verdict !== 'soon') backoff.reset();
    } catch (error) {
      if (!signal.aborted) fail(error as Error);
    }
    running = false;
    earliest = performance.now() + MIN_INTERVAL_SECONDS * 1000;
    if (verdict === 'soon') schedule(backoff.next());
    else schedule(verdict === 'poll' ? POLL_SECONDS : RESYNC_SECONDS);
    if (isRequested) schedule(0);
  }

  /** Requests a round soon. Several requests before it starts cause one round. */
  const refresh = () => {
    if (running) isRequested = true;
    else schedule(0);
  };

  watchDirectory({ path: dirname(socketPath), signal, onChange: refresh });
  watchDirectory({ path: join(kubeletDir, PLUGIN_DIRECTORY), signal, onChange: () => schedule(DEBOUNCE_SECONDS) });
  watchDirectory({
    path: kubeletDir,
    signal,
    onChange: (name) => {
      if (name === MEMORY_CHECKPOINT_FILE) schedule(DEBOUNCE_SECONDS);
    },
  });
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  refresh();
  return { refresh };
}

async function query(deps: PodResourcesSourceDeps): Promise<PodResourcesAnswer> {
  const { client, kubeletDir, podsWithCpus, signal } = deps;
  const limits = { signal, deadlineSeconds: DEADLINE_SECONDS };
  const { cpuIds, devices } = await client.allocatable(limits);
  const pods = await client.list(limits);
  const inUse = readDevices(kubeletDir, pods, podsWithCpus());
  return {
    allocatable: CpuSet.of(cpuIds),
    listed: listedContainers(pods, MAX_ENTRIES),
    claimNames: claimNames(pods),
    devices: inUse && countDevices(devices, inUse),
    memory: readMemory(kubeletDir, pods, podsWithCpus()),
  };
}

/** The devices in use; undefined if the kubelet's file about them cannot be read. */
function readDevices(
  kubeletDir: string,
  pods: readonly PodWithDevices[],
  podsWithCpus: ReadonlySet<string>,
): ListedDevices[] | undefined {
  const listed = pods.flatMap(({ containers }) => containers.flatMap((container) => container.devices));
  const file = join(kubeletDir, PLUGIN_DIRECTORY, DEVICE_CHECKPOINT_FILE);
  try {
    const text = readBounded(file, MAX_DEVICE_CHECKPOINT_BYTES);
    return [...listed, ...devicesOfPods(text, pods, podsWithCpus)];
  } catch (error) {
    // The kubelet writes it when the first plugin registers.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? listed : undefined;
  }
}

function readMemory(
  kubeletDir: string,
  pods: readonly PodWithMemory[],
  podsWithCpus: ReadonlySet<string>,
): MemoryReading {
  const file = join(kubeletDir, MEMORY_CHECKPOINT_FILE);
  try {
    return readMemoryState(readBounded(file, MAX_MEMORY_CHECKPOINT_BYTES), pods, podsWithCpus);
  } catch (error) {
    return { cells: new Map(), problem: `cannot read ${file}: ${(error as Error).message}` };
  }
}
