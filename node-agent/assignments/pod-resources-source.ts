import { dirname, join } from 'node:path';
import { DEVICE_CHECKPOINT_FILE } from '../../kube/kubelet-api/device-checkpoint.ts';
import { PLUGIN_DIRECTORY } from '../../kube/kubelet-api/device-plugin-client.ts';
import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { POD_RESOURCES_SOCKET, type PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut, PlumblineError } from '../../model/errors.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff } from '../../runtime/time.ts';
import { readBounded, unlessMissing } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { Guard } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { MAX_ENTRIES, type Reading } from './checkpoint.ts';
import { claimNames } from './cpu-claims.ts';
import { countDevices, devicesOfPods, type ListedDevices, MAX_DEVICE_CHECKPOINT_BYTES } from './devices.ts';
import { listedContainers } from './listed-containers.ts';
import {
  MAX_MEMORY_CHECKPOINT_BYTES,
  MEMORY_CHECKPOINT_FILE,
  type MemoryReading,
  readMemoryState,
} from './memory-checkpoint.ts';
import type { PodResourcesAnswer } from './view.ts';

/** Minimum seconds between two rounds: the kubelet answers 100 calls a second for all its clients together. */
const MIN_INTERVAL_SECONDS = 0.05;
/** Seconds until the next round after a usable answer. Without a checkpoint, changes come without a change of a file. */
const PAUSES = { later: 30, poll: 1 } as const;
/** Seconds in which changes of plugins and of the memory manager's state are collected into one round. */
const DEBOUNCE_SECONDS = 0.5;
const DEADLINE_SECONDS = 5;
/** Maximum length of a kubelet error, in characters. */
const MAX_PROBLEM_CHARACTERS = 300;

/** `later`: usable; `poll`: no checkpoint reports changes; `soon`: not usable (a kubelet that is still starting). */
export type AnswerVerdict = 'later' | 'poll' | 'soon';

interface PodResourcesSourceDeps {
  readonly client: PodResourcesClient;
  readonly kubeletDir: string;
  readonly podsWithCpus: () => ReadonlySet<string>;
  readonly log: AgentLogger;
  /** `startedAt`: when the round began, in monotonic milliseconds; `isRepeated`: whether it is the same as the last one. */
  readonly onReading: (reading: Reading<PodResourcesAnswer>, startedAt: number, isRepeated: boolean) => AnswerVerdict;
  readonly onFailure: (code: string) => void;
}

/**
 * Queries the kubelet after possible changes, and with increasing pauses while it does not answer. Owner: the kubelet.
 * Age: the start of the last round. End: the next answer; while there is none, the last one stays with a problem.
 */
export class PodResourcesSource {
  readonly #deps: PodResourcesSourceDeps;
  readonly #socketPath: string;
  readonly #guard: Guard;
  readonly #signal: AbortSignal;
  readonly #backoff = new Backoff({ first: 0.2, most: 5 });
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #deviceProblems: ProblemLog<AgentMessages>;
  #last: Reading<PodResourcesAnswer> = { value: undefined, problem: undefined };
  #lastText = '';
  #round: 'none' | 'running' | 'running, another requested' = 'none';
  #next: { readonly timer: NodeJS.Timeout; readonly at: number } | undefined;
  /** No round begins before, in monotonic milliseconds. */
  #earliest = 0;

  /** @param guard fails if a listener throws */
  constructor(deps: PodResourcesSourceDeps, guard: Guard, signal: AbortSignal) {
    this.#deps = deps;
    this.#guard = guard;
    this.#signal = signal;
    this.#socketPath = join(deps.kubeletDir, POD_RESOURCES_SOCKET);
    this.#problems = new ProblemLog(deps.log, { socketPath: this.#socketPath });
    this.#deviceProblems = new ProblemLog(deps.log);
  }

  follow(): void {
    const { kubeletDir, log } = this.#deps;
    const signal = this.#signal;
    const soon = () => this.#schedule(DEBOUNCE_SECONDS);
    const onFile = (name: string | undefined) => {
      if (name === MEMORY_CHECKPOINT_FILE) soon();
    };
    watchDirectory({ path: dirname(this.#socketPath), signal, onChange: this.refresh, log });
    watchDirectory({ path: join(kubeletDir, PLUGIN_DIRECTORY), signal, onChange: soon, log });
    watchDirectory({ path: kubeletDir, signal, onChange: onFile, log });
    signal.addEventListener('abort', () => clearTimeout(this.#next?.timer), { once: true });
    this.refresh();
  }

  /** Requests a round soon. Several requests before it starts cause one round. */
  readonly refresh = (): void => {
    if (this.#round === 'none') this.#schedule(0);
    else this.#round = 'running, another requested';
  };

  #schedule(seconds: number): void {
    const at = Math.max(performance.now() + seconds * 1000, this.#earliest);
    if (this.#signal.aborted || (this.#next !== undefined && at >= this.#next.at)) return;
    clearTimeout(this.#next?.timer);
    const begin = () => {
      this.#next = undefined;
      if (this.#round === 'none') this.#runRound().catch(this.#guard.fail);
      else this.#round = 'running, another requested';
    };
    this.#next = { at, timer: setTimeout(begin, at - performance.now()) };
  }

  /** @throws only what a listener throws */
  async #runRound(): Promise<void> {
    this.#round = 'running';
    const startedAt = performance.now();
    const reading = await this.#query();
    const verdict = this.#publish(reading, startedAt);
    const isRequested = this.#hasRequest();
    this.#round = 'none';
    this.#earliest = performance.now() + MIN_INTERVAL_SECONDS * 1000;
    if (verdict !== 'soon') this.#backoff.reset();
    this.#schedule(verdict === 'soon' ? this.#backoff.next() : PAUSES[verdict]);
    if (isRequested) this.#schedule(0);
  }

  #hasRequest(): boolean {
    return this.#round === 'running, another requested';
  }

  async #query(): Promise<Reading<PodResourcesAnswer>> {
    const { client, kubeletDir, podsWithCpus } = this.#deps;
    try {
      const limits = { signal: this.#signal, deadlineSeconds: DEADLINE_SECONDS };
      const { cpuIds, devices } = await client.allocatable(limits);
      const pods = await client.list(limits);
      const inUse = readDevices(kubeletDir, pods, podsWithCpus(), this.#deviceProblems);
      const value = {
        allocatable: CpuSet.of(cpuIds),
        listed: listedContainers(pods, MAX_ENTRIES),
        claimNames: claimNames(pods),
        devices: inUse && countDevices(devices, inUse),
        memory: readMemory(kubeletDir, pods, podsWithCpus()),
      };
      return { value, problem: undefined };
    } catch (error) {
      if (!this.#signal.aborted) this.#deps.onFailure(error instanceof PlumblineError ? error.code : 'failed');
      return { value: this.#last.value, problem: cut((error as Error).message, MAX_PROBLEM_CHARACTERS) };
    }
  }

  #publish(reading: Reading<PodResourcesAnswer>, startedAt: number): AnswerVerdict {
    const { problem } = reading;
    if (this.#signal.aborted) return 'later';
    if (problem !== undefined && problem === this.#last.problem) return 'soon';
    if (problem === undefined) this.#problems.recovered();
    else this.#problems.failed(problem, 'querying the kubelet failed; keeping the last answer and retrying');
    const text = JSON.stringify(reading, (_key, value: unknown) => (value instanceof Map ? [...value] : value));
    const isRepeated = text === this.#lastText;
    this.#last = reading;
    this.#lastText = text;
    const verdict = this.#deps.onReading(reading, startedAt, isRepeated);
    return problem === undefined ? verdict : 'soon';
  }
}

/** The devices in use; undefined if the kubelet's file about them cannot be read. */
function readDevices(
  kubeletDir: string,
  pods: readonly PodResources[],
  podsWithCpus: ReadonlySet<string>,
  problems: ProblemLog<AgentMessages>,
): ListedDevices[] | undefined {
  const listed = pods.flatMap(({ containers }) => containers.flatMap((container) => container.devices));
  const file = join(kubeletDir, PLUGIN_DIRECTORY, DEVICE_CHECKPOINT_FILE);
  try {
    const text = unlessMissing(() => readBounded(file, MAX_DEVICE_CHECKPOINT_BYTES));
    // The kubelet writes it when the first plugin registers.
    if (text === undefined) return listed;
    const inUse = [...listed, ...devicesOfPods(text, pods, podsWithCpus)];
    problems.recovered();
    return inUse;
  } catch (error) {
    problems.failed(`${file}: ${(error as Error).message}`, 'devices in use are unknown; the report leaves them out');
    return undefined;
  }
}

function readMemory(
  kubeletDir: string,
  pods: readonly PodResources[],
  podsWithCpus: ReadonlySet<string>,
): MemoryReading {
  const file = join(kubeletDir, MEMORY_CHECKPOINT_FILE);
  try {
    return readMemoryState(readBounded(file, MAX_MEMORY_CHECKPOINT_BYTES), pods, podsWithCpus);
  } catch (error) {
    return { cells: new Map(), problem: `cannot read ${file}: ${(error as Error).message}` };
  }
}
