import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicSeconds, sleep } from '../../../runtime/time.ts';
import type { KubernetesObject } from '../../real/control-plane-stage.ts';
import { objectsOf, render } from '../../real/install/rendered-fixture.ts';
import { root } from '../../support/bundles.ts';
import { type Cluster, type LabNode, unlessNotFound } from '../cluster.ts';
import type { LabMachine } from '../lab.ts';
import { makeLayer, writeArchive } from '../machine/oci-archive.ts';
import { NODE_ARCHIVE, NODE_IMAGE } from '../machine/parts.ts';
import { applyAgentObjects, applyObjects, type GuestAgent, type LogLine } from './guest-agent.ts';

const SYSTEM = 'plumbline-system';
const NAME = 'plumbline-node-agent';
const DAEMON_SETS = `/apis/apps/v1/namespaces/${SYSTEM}/daemonsets`;
const PODS = `/api/v1/namespaces/${SYSTEM}/pods`;
const SELECTOR = `app.kubernetes.io/name=${NAME}`;
const LOGS = `/var/log/pods/${SYSTEM}_${NAME}-*/node-agent/*.log`;
const PROGRAM = '/nodejs/bin/node /plumbline/node-agent.cjs';
/** Seconds for the DaemonSet's pod to end: its grace period, and the slowness of the emulation. */
const GONE_WITHIN = 600;

/** As operators install it: its image, made here without an engine, its DaemonSet, and what both need. */
export async function installDaemonSet(
  lab: LabMachine,
  cluster: Cluster,
  node: LabNode,
  components: readonly string[] = [],
): Promise<GuestAgent> {
  const { client } = cluster;
  const shipped = objectsOf(render('base', components)).find(
    ({ kind, metadata }) => kind === 'DaemonSet' && metadata.name === NAME,
  ) as DaemonSet;
  await importImage(lab, shipped.spec.template.spec.containers[0]!.image);
  await applyAgentObjects(lab, cluster, node);

  const stop = async () => {
    await client.delete(`${DAEMON_SETS}/${NAME}`).catch(unlessNotFound);
    const end = monotonicSeconds() + GONE_WITHIN;
    while ((await podsOf(client)).length > 0) {
      if (monotonicSeconds() > end) throw new Error(`the agent's pod is still there after ${GONE_WITHIN} s`);
      await sleep(0.2);
    }
  };
  return {
    async start(...flags) {
      await stop();
      applyObjects(lab, [withFlags(shipped, flags)]);
    },
    allow: () => {
      throw new Error('the shipped DaemonSet says what the agent may write');
    },
    stop,
    async log() {
      const text = await lab.run(`cat ${LOGS}`);
      // Each line starts with its time, its stream and whether it is complete.
      const whole = text.split('\n').flatMap((line) => /^\S+ \S+ F (\{.*\})$/.exec(line)?.[1] ?? []);
      return whole.map((line) => JSON.parse(line) as LogLine);
    },
  };
}

async function podsOf(client: Cluster['client']): Promise<readonly unknown[]> {
  return ((await client.get(PODS, { query: { labelSelector: SELECTOR } })) as { items: unknown[] }).items;
}

type DaemonSet = KubernetesObject & {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly { image: string; args: readonly string[] }[] };
    };
  };
};

function withFlags(shipped: DaemonSet, flags: readonly string[]): DaemonSet {
  const { template } = shipped.spec;
  const containers = template.spec.containers.map((one) => ({ ...one, args: [...one.args, ...flags] }));
  return { ...shipped, spec: { ...shipped.spec, template: { ...template, spec: { ...template.spec, containers } } } };
}

/** As in the Dockerfile, on a replacement of its base, whose layer the runtime has from the second disk. */
async function importImage(lab: LabMachine, name: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-lab-'));
  try {
    const out = ['--', 'node-agent', '--out', directory];
    execFileSync('npm', ['run', '--silent', 'build:image', ...out], { cwd: root, stdio: 'pipe' });
    const layer = await makeLayer(join(directory, 'node-agent'), join(directory, 'layer.tar'));
    const archive = join(directory, 'image.tar');
    const base = lab.nodeLayer();
    const entrypoint = PROGRAM.split(' ');
    const image = { name, layers: [base, layer], entrypoint, workingDirectory: '/plumbline' };
    await writeArchive(archive, [image], [base]);
    const images = 'ctr --namespace k8s.io images';
    await lab.run(`${images} list --quiet | grep -q '${NODE_IMAGE}$' || ${images} import --local ${NODE_ARCHIVE}`);
    await lab.copy(archive, '/var/tmp/agent.tar');
    await lab.run(`${images} import --local /var/tmp/agent.tar && rm /var/tmp/agent.tar`);
  } finally {
    await rm(directory, { recursive: true });
  }
}
