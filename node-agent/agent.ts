import { createKubeClient } from '../kube/client.ts';
import type { Daemon } from '../runtime/daemon.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createProbeServer } from '../runtime/probes.ts';
import { VERSION } from '../runtime/version.ts';
import type { NodeAgentConfig } from './config.ts';
import { type AgentDuties, createDuties } from './duties.ts';
import { type DutyObserver, keepRunning } from './duty.ts';
import { createAgentMetrics } from './metrics.ts';

/** Wires the agent together. Stopping it aborts every duty at once and waits for what each of them undoes. */
export function createAgent(config: NodeAgentConfig, log: Logger): Daemon {
  const client = createKubeClient({ kubeconfig: config.kubeconfig, userAgent: `plumbline-node-agent/${VERSION}` });
  const registry = createRegistry();
  const metrics = createAgentMetrics(registry);
  const agent = createDuties({ config, client, metrics, log });
  const stopping = new AbortController();
  const waiting = new Set<string>();
  let running: Promise<unknown> = Promise.resolve();

  const observer: DutyObserver = {
    onState(duty, isRunning) {
      metrics.dutyRunning.set({ duty }, isRunning ? 1 : 0);
      if (isRunning) waiting.delete(duty);
      else waiting.add(duty);
    },
    onFailure: (duty) => metrics.dutyFailures.inc({ duty }),
  };
  const probeServer = createProbeServer({
    host: config.probeHost,
    port: config.probePort,
    notReady: () => (stopping.signal.aborted ? 'stopping' : notReady(waiting, agent)),
    registry,
    log,
  });

  return {
    async start() {
      await probeServer.start();
      running = Promise.all(agent.duties.map((duty) => keepRunning(duty, log, observer, stopping.signal)));
      if (agent.duties.length === 0)
        log.warn('the DPU health check is off, and there is nothing else to do in this mode');
      const { nodeName: node, mode } = config;
      log.info(
        { node, mode, duties: agent.duties.map(({ name }) => name), probePort: probeServer.port },
        'agent started',
      );
    },
    async stop() {
      stopping.abort();
      await running;
      await probeServer.stop(0);
      await client.close();
    },
  };
}

/** Why the agent is not ready: duties that failed, or CPUs whose owners are not known yet. */
function notReady(waiting: ReadonlySet<string>, { assignments }: AgentDuties): string | undefined {
  if (waiting.size > 0) return `duties that do not run: ${[...waiting].join(', ')}`;
  const view = assignments?.view();
  if (view === undefined || view.free !== undefined) return undefined;
  return `the CPU assignments are not known yet: ${view.problems.join('; ')}`;
}
