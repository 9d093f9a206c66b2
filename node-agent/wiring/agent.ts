import { createKubeClient } from '../../kube/api-transport.ts';
import { apiAccess } from '../../kube/daemon-access.ts';
import { ApiEventRecorder } from '../../kube/events.ts';
import { AGENT } from '../../model/names.ts';
import { VERSION } from '../../runtime/config.ts';
import type { Daemon } from '../../runtime/daemon.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createProbeServer } from '../../runtime/probes.ts';
import { Durations } from '../../runtime/problem-log.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { gateProgram } from '../gate/installer.ts';
import { AgentLock } from '../lifecycle/agent-lock.ts';
import { type DutyObserver, keepRunning, Problems } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { createAgentMetrics, LAG_PRECISION_MILLISECONDS } from '../telemetry/metrics.ts';
import type { NodeAgentConfig } from './config.ts';
import { type AgentDuties, createDuties } from './duties.ts';

/** Maximum connections to the API server: few, since every node runs an agent. */
const MAX_CONNECTIONS = 4;
/** Seconds that a failed duty must run before its failure counts as past. */
const STEADY_SECONDS = 30;

/** Waits while another agent works on the node. @param program this process's file: the gate is next to it */
export async function createAgent(config: NodeAgentConfig, log: AgentLogger, program: string): Promise<Daemon> {
  const { nodeName } = config;
  const access = await apiAccess(config.kubeconfig);
  const client = createKubeClient(access, `plumbline-node-agent/${VERSION}`, MAX_CONNECTIONS);
  const events = new ApiEventRecorder({ client, component: AGENT, host: nodeName, log, nowSeconds: monotonicSeconds });
  const registry = createRegistry(LAG_PRECISION_MILLISECONDS);
  const metrics = createAgentMetrics(registry);
  const failures = new Problems();
  const { token, tokenFile } = access;
  const services = { nodeName, client, events, metrics, log };
  const settings = { config, token, tokenFile, gateProgram: gateProgram(program) };
  const agent = createDuties({ ...services, ...settings, failures, unsaved: new Problems() });
  // On a DPU the agent changes nothing on the machine, and two agents may renew the same Lease.
  const lock = config.mode === 'dpu' ? undefined : new AgentLock(config.stateDir, log);
  const stopping = new AbortController();
  const waiting = new Set<string>();
  const failing = new Durations();
  let running: Promise<unknown> = Promise.resolve();

  const observer: DutyObserver = {
    onState(duty, isRunning) {
      metrics.dutyRunning.set({ duty }, isRunning ? 1 : 0);
      if (isRunning) waiting.delete(duty);
      else waiting.add(duty);
      const clear = () => {
        if (waiting.has(duty) || !failures.current.includes(duty)) return;
        failures.set(duty, undefined);
        log.info({ duty, ...failing.end(duty) }, 'recovered');
      };
      if (isRunning && failures.current.includes(duty)) setTimeout(clear, STEADY_SECONDS * 1000).unref();
    },
    onFailure(duty) {
      metrics.dutyFailures.inc({ duty });
      failures.set(duty, duty);
      failing.begin(duty);
    },
  };
  const probeServer = createProbeServer({
    host: config.probeHost,
    port: config.probePort,
    notReady: () => (stopping.signal.aborted ? 'stopping' : (lock?.problem ?? notReady(waiting, agent))),
    registry,
    pages: {
      ...(agent.ovs && { '/ovs': agent.ovs.status }),
      ...(agent.vms && { '/vms': agent.vms.status }),
      ...(agent.interference && { '/interference': agent.interference }),
    },
    log,
  });

  const run = async () => {
    await lock?.acquired(stopping.signal);
    // An agent that waited may have started while the other one had the port.
    const probes = { name: 'probes', run: async () => (probeServer.port === 0 ? probeServer.start() : undefined) };
    const duties = agent.duties.map((duty) => keepRunning(duty, log, observer, stopping.signal));
    await Promise.all([keepRunning(probes, log, { onState() {}, onFailure() {} }, stopping.signal), ...duties]);
  };

  return {
    async start() {
      await probeServer.start().catch((error: unknown) => {
        if (lock?.problem === undefined) throw error;
      });
      running = run();
      if (agent.duties.length === 0) log.warn('DPU health check off; nothing to do in this mode');
      const names = agent.duties.map(({ name }) => name);
      log.info({ node: nodeName, mode: config.mode, duties: names, probePort: probeServer.port }, 'agent started');
    },
    async stop() {
      stopping.abort();
      await running;
      await events.flush();
      await probeServer.stop(0);
      await client.close();
      lock?.release();
    },
  };
}

/** Why the agent is not ready: failed duties, CPUs whose owners are unknown, or launchers without news. */
function notReady(waiting: ReadonlySet<string>, { assignments, launcherProblem }: AgentDuties): string | undefined {
  if (waiting.size > 0) return `waiting to restart failed duties: ${[...waiting].join(', ')}`;
  const view = assignments?.view();
  if (view === undefined || view.free !== undefined) return launcherProblem?.();
  return `the CPU assignments are not known yet: ${view.problems.join('; ')}`;
}
