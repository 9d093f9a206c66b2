import { existsSync } from 'node:fs';
import type { CniPod, DpuWord } from '../../../model/cni/decide.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAnswers, type GatePolicy } from '../../../node-agent/gate/answers.ts';
import { createGateServer } from '../../../node-agent/gate/server.ts';
import { eventually, recordingLogger, testMetrics } from '../support.ts';

/** The agent's real side of the gate. The test controls the DPU, Open vSwitch and the kubelet. */
export interface GateAgent {
  dpu: DpuWord | undefined;
  vacate: (cpus: CpuSet, signal: AbortSignal) => Promise<void>;
  hasDevice: (pod: CniPod) => Promise<boolean | undefined>;
  readonly cpus: Map<string, CpuSet>;
  readonly vacated: CpuSet[];
  readonly logged: ReturnType<typeof recordingLogger>;
  recheck(): number;
  stop(): Promise<void>;
}

export const READY: DpuWord = { ready: true, reason: 'its lease was renewed' };
export const DEAD: DpuWord = { ready: false, reason: 'its lease ovn-dpu-a was last renewed 41 s ago' };

export async function startGateAgent(socketPath: string, policy: Partial<GatePolicy> = {}): Promise<GateAgent> {
  const stopping = new AbortController();
  const logged = recordingLogger();
  const agent: GateAgent = {
    dpu: READY,
    vacate: async () => {},
    hasDevice: async () => undefined,
    cpus: new Map(),
    vacated: [],
    logged,
    recheck: () => answers.recheck(),
    async stop() {
      stopping.abort();
      await running;
    },
  };
  const answers = createAnswers({
    policy: { status: true, scope: 'all', exempt: ['kube-system', 'openshift-*'], ...policy },
    dpu: () => agent.dpu,
    cpusOf: (uid) => agent.cpus.get(uid) ?? CpuSet.EMPTY,
    vacate: async (cpus, signal) => {
      agent.vacated.push(cpus);
      await agent.vacate(cpus, signal);
    },
    hasDevice: (pod) => agent.hasDevice(pod),
    metrics: testMetrics(),
  });
  const server = createGateServer({ socketPath, answer: answers.answer, log: logged.log });
  const running = server.run(stopping.signal);
  await eventually(() => existsSync(socketPath), 'the agent listens');
  return agent;
}
