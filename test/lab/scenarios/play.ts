import { NODE_TOPOLOGY_API as API, type NodeTopologyStatus, nodeTopology } from '../../../kube/node-topology.ts';
import { monotonicSeconds, sleep } from '../../../runtime/time.ts';
import { createStatusLine } from '../../support/status-line.ts';
import { type Cluster, createCluster } from '../cluster.ts';
import type { Lab } from '../lab.ts';
import { nodeName } from '../machine/node-files.ts';
import { installDaemonSet } from './daemon-set.ts';
import { installUnit } from './guest-agent.ts';
import type { Scenario, Scene } from './scenario.ts';
import { createScenePods } from './scene-pods.ts';

/** Seconds, because this machine may have other work. */
const HOLDS_WITHIN = 900;
const CHECK_SECONDS = 0.5;
/** If standard output is not a terminal, a line names the current wait after this many checks. */
const LOOKS_A_LINE = 60;
const READY = 600;

export interface Count {
  passed: number;
  failed: number;
}

export async function playScenarios(
  lab: Lab,
  scenarios: readonly Scenario[],
  signal: AbortSignal,
  count: Count,
): Promise<void> {
  const cluster = createCluster(lab.kubeconfig(), signal, lab.machines().length);
  try {
    for (const scenario of scenarios) {
      const missing = scenario.missing?.();
      if (missing !== undefined) {
        console.log(`skipped ${scenario.name}: ${missing}`);
        continue;
      }
      await cluster.prepare();
      const undoes: (() => Promise<unknown>)[] = [() => cluster.prepare()];
      const scenes: Scene[] = [];
      for (const [index, machine] of lab.machines().entries()) {
        const node = await cluster.readyNode(READY, new Map(), { name: nodeName(index) });
        const agent = scenario.daemonSet
          ? await installDaemonSet(machine, cluster, node, scenario.components)
          : await installUnit(machine, cluster, node);
        undoes.push(() => agent.stop());
        scenes.push({
          lab: machine,
          cluster,
          node,
          agent,
          pods: createScenePods(machine, cluster, node.name),
          report: () => reportOf(cluster, node.name),
          machines: scenes,
          signal,
          holds: (what, check, seconds = HOLDS_WITHIN) => hold(what, check, seconds, signal, count),
          undo: (act) => void undoes.push(act),
        });
      }
      const [scene] = scenes as [Scene];
      console.log(`# ${scenario.name}: ${scenario.about}, kubelet ${scene.node.version}`);
      try {
        await scenario.play(scene);
      } catch (error) {
        count.failed++;
        console.log(`FAILED ${scenario.name}: ${(error as Error).message}`);
        for (const { agent, node } of scenes) {
          const lines = await agent.log().catch(() => []);
          for (const line of lines.slice(-15)) console.log(`       ${node.name} ${JSON.stringify(line)}`);
        }
      } finally {
        for (const undo of undoes.toReversed()) {
          await undo().catch((error: Error) => console.log(`       undoing: ${error.message}`));
        }
      }
    }
  } finally {
    await cluster.close();
  }
}

async function reportOf({ client }: Cluster, node: string): Promise<NodeTopologyStatus> {
  const { status } = nodeTopology.parse(await client.get(`/apis/${API.apiVersion}/${API.plural}/${node}`));
  if (status === undefined) throw new Error('the NodeTopology has no status');
  return status;
}

/** Checks until it holds. @throws Error with the step and the last reason why it did not hold */
async function hold(
  what: string,
  check: () => Promise<unknown>,
  seconds: number,
  signal: AbortSignal,
  count: Count,
): Promise<void> {
  const begun = monotonicSeconds();
  const progress = createStatusLine(process.stdout, LOOKS_A_LINE);
  for (;;) {
    let reason: string;
    try {
      const seen = await check();
      progress.end();
      const took = (monotonicSeconds() - begun).toFixed(1).padStart(5);
      count.passed++;
      console.log(`ok  ${took} s  ${what}${typeof seen === 'string' && seen !== '' ? `: ${seen}` : ''}`);
      return;
    } catch (error) {
      reason = (error as Error).message;
      if (signal.aborted || monotonicSeconds() - begun > seconds) {
        progress.end();
        throw new Error(`${what}, not within ${seconds} s: ${reason}`, { cause: error });
      }
    }
    progress.status(`…   ${(monotonicSeconds() - begun).toFixed(1).padStart(5)} s  ${what}: ${reason.split('\n')[0]}`);
    await sleep(CHECK_SECONDS, signal);
  }
}
