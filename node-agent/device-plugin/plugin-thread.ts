import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CpuSet } from '../../model/cpu-set.ts';
import { sleep } from '../../runtime/time.ts';
import { type Services, untilAborted } from '../lifecycle/duty.ts';
import type { DeviceHolder } from './allocation-check.ts';
import type { FromPluginThread, PluginThreadData, ToPluginThread } from './before-start.ts';

/** Seconds that the thread may take to remove its sockets. */
const STOP_DEADLINE_SECONDS = 3;

/** Seconds between reads of values without notifications: the kubelet's maxPods and its options. */
const CHECK_SECONDS = 60;

/** MiB. The thread holds devices and the pods of one List. Without a limit, its heap would grow before a collection. */
const LIMITS = { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 2 };

/** The advertised resources, and whether the node's kubelet assigns whole cores only. */
export type Advertisement = Omit<Extract<ToPluginThread, { kind: 'resources' }>, 'kind'>;

export interface PluginThreadDeps extends Pick<Services, 'log' | 'metrics'> {
  readonly program: string;
  readonly data: () => Promise<PluginThreadData>;
  /** Undefined if not known yet. */
  readonly advertisement: (signal: AbortSignal) => Promise<Advertisement | undefined>;
  /** Calls the listener when the advertisement may have changed. @returns a function that stops the calls */
  readonly subscribe: (listener: () => void) => () => void;
  /** Checks the allocation and vacates the CPUs. @returns why the container must not start, or undefined */
  readonly beforeStart: (
    resource: string,
    holder: DeviceHolder | undefined,
    signal: AbortSignal,
  ) => Promise<string | undefined>;
}

/** The thread's program file: next to the agent's bundle, or the source. */
export function pluginProgram(agentProgram: string): string {
  const directory = dirname(agentProgram);
  return agentProgram.endsWith('.ts')
    ? join(directory, 'device-plugin/worker-from-source.js')
    : join(directory, 'device-plugin-worker.cjs');
}

/**
 * The main thread's side of the device plugin: runs it in a separate thread, sends it the resources to advertise, and
 * answers its requests before container starts.
 */
export function createPluginThread(deps: PluginThreadDeps) {
  const { program, metrics, log } = deps;
  return {
    /** The duty. It fails if the thread exits on its own. */
    async run(signal: AbortSignal): Promise<void> {
      const workerData = await deps.data();
      const worker = new Worker(program, {
        workerData,
        name: 'device-plugin',
        ...(program.endsWith('.cjs') && { resourceLimits: LIMITS }),
      });
      const post = (message: ToPluginThread) => worker.postMessage(message);
      const ended = new Promise<never>((_resolve, reject) => {
        worker.once('error', reject);
        worker.once('exit', (code) => reject(new Error(`the device plugin's thread ended with status ${code}`)));
      });
      ended.catch(() => undefined);

      let advertised = '';
      let [requested, answered] = [0, 0];
      const advertise = () => {
        const question = ++requested;
        deps.advertisement(signal).then(
          (advertisement) => {
            const text = JSON.stringify(advertisement ?? {});
            if (advertisement === undefined || text === advertised || question < answered) return;
            advertised = text;
            answered = question;
            post({ kind: 'resources', ...advertisement });
          },
          (err: unknown) => log.warn({ err }, 'reading the devices to advertise failed; keeping the last ones'),
        );
      };

      worker.on('message', (message: FromPluginThread) => {
        if (message.kind === 'registered') {
          metrics.registrations.inc({ resource: metrics.resourceLabel(message.resource), outcome: message.outcome });
        } else if (message.kind === 'pre-start') {
          metrics.preStarts.inc({ resource: metrics.resourceLabel(message.resource), outcome: message.outcome });
        } else {
          const { call, resource, holder } = message;
          const owner = holder && { ...holder, cpus: CpuSet.parse(holder.cpus) };
          deps
            .beforeStart(resource, owner, signal)
            .catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
            .then((refusal) => post({ kind: 'answer', call, refusal }))
            .catch(() => undefined);
        }
      });

      const unsubscribe = deps.subscribe(advertise);
      const timer = setInterval(advertise, CHECK_SECONDS * 1000);
      advertise();
      try {
        await Promise.race([ended, untilAborted(signal)]);
      } finally {
        clearInterval(timer);
        unsubscribe();
        post({ kind: 'stop' });
        await Promise.race([ended.catch(() => undefined), sleep(STOP_DEADLINE_SECONDS)]);
        await worker.terminate();
      }
    },
  };
}
