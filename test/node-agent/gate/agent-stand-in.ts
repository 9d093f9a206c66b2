import { existsSync } from 'node:fs';
import type { CniPod, DpuWord } from '../../../model/cni/decide.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { GateAnswers } from '../../../node-agent/gate/answers.ts';
import { GateServer } from '../../../node-agent/gate/server.ts';
import { eventually, recordingLogger, testMetrics } from '../support.ts';

type Policy = ConstructorParameters<typeof GateAnswers>[0]['policy'];
export type GateAgent = Awaited<ReturnType<typeof startGateAgent>>;

export const READY: DpuWord = { ready: true, reason: 'its lease was renewed' };
export const DEAD: DpuWord = { ready: false, reason: 'its lease ovn-dpu-a was last renewed 41 s ago' };

/** The agent's real side of the gate. The test controls the DPU, Open vSwitch and the kubelet. */
export async function startGateAgent(socketPath: string, policy: Partial<Policy> = {}) {
  const stopping = new AbortController();
  const logged = recordingLogger();
  const agent = {
    dpu: READY as DpuWord | undefined,
    vacate: async (_cpus: CpuSet, _signal: AbortSignal): Promise<void> => {},
    hasDevice: async (_pod: CniPod): Promise<boolean | undefined> => undefined,
    cpus: new Map<string, CpuSet>(),
    vacated: [] as CpuSet[],
    logged,
    recheck: (): number => answers.recheck(),
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
  const answers = new GateAnswers({
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
  const answer: GateAnswers['answer'] = (question, caller) => answers.answer(question, caller);
  const server = new GateServer({ socketPath, answer, log: logged.log });
  const running = server.run(stopping.signal);
  await eventually(() => existsSync(socketPath), 'the agent listens');
  return agent;
}
