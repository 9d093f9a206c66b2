import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGENT, NAMESPACE, SCHEDULER, WEBHOOK } from '../../model/names.ts';
import type { PodProcesses } from '../../sandbox/cluster/cluster.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { StepFailed, until } from './until.ts';

export type DaemonName = 'webhook' | 'scheduler-plugin' | 'node-agent';

type LogLine = Readonly<Record<string, unknown>> & { readonly msg?: string };

export type DaemonProcess = ReturnType<typeof startDaemon>;

interface DaemonOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Seconds in which a daemon starts on a slow machine. */
const START_SECONDS = 60;
const KILL_AFTER_SECONDS = 8;
const MAX_LINE_CHARACTERS = 400;

export function startDaemon({ name, program, args, directory, env = {} }: DaemonOptions) {
  const logFile = join(directory, `${name}.log`);
  const out = openSync(logFile, 'a');
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', out, out],
    env: { ...process.env, ...env },
  });
  closeSync(out);
  const log = () => readLog(logFile);
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const assertAlive = () => {
    if (isAlive()) return;
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
    const last = lines.findLast((line) => /^\w*Error\b|"level":"(?:fatal|error)"/.test(line)) ?? lines.at(-1) ?? '';
    const status = `status ${child.exitCode ?? child.signalCode}`;
    throw new StepFailed(`${name} ended with ${status}: ${last.slice(0, MAX_LINE_CHARACTERS)}; its log: ${logFile}`);
  };
  const servedPorts = () => {
    const line = log().find((entry) => typeof entry['probePort'] === 'number');
    return line && { port: Number(line['port'] ?? 0), probePort: Number(line['probePort']) };
  };
  const ports = () =>
    until(`${name} to serve (log: ${logFile})`, START_SECONDS, () => {
      assertAlive();
      return servedPorts();
    });
  return {
    name,
    pid: child.pid ?? 0,
    logFile,
    log,
    isAlive,
    /** @throws StepFailed with the last line of its log if it has ended */
    assertAlive,
    servedPorts,
    /** The ports that the daemon reports. @throws StepFailed if it reports none within 10 s */
    ports,
    /** Waits until /readyz responds with ok. @throws StepFailed if it does not within a minute */
    async ready() {
      const { probePort } = await ports();
      await until(`${name} to be ready (log: ${logFile})`, START_SECONDS, async () => {
        assertAlive();
        const response = await fetch(`http://127.0.0.1:${probePort}/readyz`).catch(() => undefined);
        return response?.ok ? true : undefined;
      });
    },
    stop: (signal: NodeJS.Signals = 'SIGTERM') => stopChild(child, signal),
  };
}

async function stopChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_SECONDS * 1000);
  await ended;
  clearTimeout(timer);
}

function readLog(file: string): LogLine[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line): LogLine[] => {
      try {
        const value: unknown = JSON.parse(line);
        return typeof value === 'object' && value !== null ? [value as LogLine] : [];
      } catch {
        return [];
      }
    });
}

/** What a port of a container is in the log of its daemon, as in the manifests. */
const PORTS: Readonly<Record<string, Readonly<Record<number, 'port' | 'probePort'>>>> = {
  [WEBHOOK]: { 8443: 'port', 8081: 'probePort' },
  [SCHEDULER]: { 8082: 'port', 8081: 'probePort' },
  [AGENT]: { 8082: 'probePort' },
  [`${AGENT}-dpu-host`]: { 8082: 'probePort' },
};

/** Kubernetes' defaults of a probe. */
const PROBE_TIMEOUT_MILLISECONDS = 1000;
const FAILURE_THRESHOLD = 3;
const PROBE_PERIOD_MILLISECONDS = 5000;

/**
 * Whether a daemon answers /readyz, as its kubelet finds out. Owner: the daemon. Age: a period of its probe, or the time
 * between two calls until it is ready for the first time. End: with the daemon.
 */
class Readiness {
  readonly #daemon: DaemonProcess;
  #isReady = false;
  #failures = 0;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(daemon: DaemonProcess) {
    this.#daemon = daemon;
  }

  /** By the last probe; starts the next one if it is due. */
  get isReady(): boolean {
    if (!this.#daemon.isAlive()) return false;
    const now = performance.now();
    if (!this.#isReady || now - this.#probedAt >= PROBE_PERIOD_MILLISECONDS) {
      this.#probedAt = now;
      void this.#probe();
    }
    return this.#isReady;
  }

  async #probe(): Promise<void> {
    const port = this.#daemon.servedPorts()?.probePort;
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MILLISECONDS);
    const url = `http://127.0.0.1:${port}/readyz`;
    const response = port === undefined ? undefined : await fetch(url, { signal }).catch(() => undefined);
    await response?.body?.cancel();
    this.#failures = response?.ok ? 0 : this.#failures + 1;
    if (this.#failures === 0) this.#isReady = true;
    else if (this.#failures >= FAILURE_THRESHOLD) this.#isReady = false;
  }
}

const keyOf = (name: string, node = '') => `${name} ${node}`;

const nameOf = ({ metadata }: KubePod) => metadata.labels?.['app.kubernetes.io/name'] ?? '';

export class DaemonPods implements PodProcesses {
  readonly #daemons = new Map<string, { readonly daemon: DaemonProcess; readonly readiness: Readiness }>();

  /** A daemon that is added again replaces the one before. */
  add(daemon: DaemonProcess, name: string, node?: string): void {
    this.#daemons.set(keyOf(name, node), { daemon, readiness: new Readiness(daemon) });
  }

  isReady(pod: KubePod): boolean {
    return pod.metadata.namespace !== NAMESPACE || this.#entryOf(pod)?.readiness.isReady === true;
  }

  localPort(pod: KubePod, port: number): number | undefined {
    const daemon = this.#entryOf(pod)?.daemon;
    const name = PORTS[nameOf(pod)]?.[port];
    return name && daemon?.isAlive() ? daemon.servedPorts()?.[name] : undefined;
  }

  /** The embedded scheduler stands for the container kube-scheduler, and writes no log. */
  logFile(pod: KubePod, container: string): string | undefined {
    const isDaemon = pod.metadata.namespace === NAMESPACE && container !== 'kube-scheduler';
    return isDaemon ? this.#entryOf(pod)?.daemon.logFile : undefined;
  }

  #entryOf(pod: KubePod) {
    return this.#daemons.get(keyOf(nameOf(pod))) ?? this.#daemons.get(keyOf(nameOf(pod), pod.spec.nodeName));
  }
}
