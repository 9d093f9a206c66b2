import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { NODE_TOPOLOGY_API as API } from '../../../kube/node-topology.ts';
import { AGENT_LEASE_PREFIX, NAMESPACE } from '../../../model/names.ts';
import { type KubernetesObject, namespaceOf } from '../../real/control-plane-stage.ts';
import { objectsOf, render } from '../../real/install/rendered-fixture.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import { type Cluster, type LabNode, unlessNotFound } from '../cluster.ts';
import type { LabMachine } from '../lab.ts';

const HOME = '/opt/plumbline-lab/agent';
export const AGENT_UNIT = 'plumbline-lab-agent';
const LOG = '/run/plumbline-lab-agent.log';
const STATE = '/var/lib/plumbline';
/** The namespace of the DPUs’ Leases. */
const NETWORK = namespaceOf('ovn-kubernetes');
const TOKEN_SECONDS = 24 * 3600;
const ACCOUNT = '/api/v1/namespaces/plumbline-system/serviceaccounts/plumbline-node-agent';

const BUNDLES = ['plumbline-gate', 'node-agent.cjs', 'kubeconfig.cjs'];
const MODULES = ['koffi', '@koromix'];

const CONFINED = [
  'CapabilityBoundingSet=CAP_SYS_NICE',
  'NoNewPrivileges=yes',
  'ProtectSystem=strict',
  `ReadWritePaths=/var/lib/kubelet ${STATE}`,
  'SystemCallFilter=@system-service',
  'SystemCallErrorNumber=EPERM',
];

export type LogLine = Readonly<Record<string, unknown>> & { readonly msg?: string };

export interface GuestAgent {
  start(...flags: string[]): Promise<void>;
  /** Additional writable paths from its next start on, with any owner, as in the gate's components. */
  allow(...paths: readonly string[]): void;
  stop(): Promise<void>;
  log(): Promise<readonly LogLine[]>;
}

/** Installs the agent as a systemd unit, with the shipped CRD, RBAC and policy, and a token bound to the node. */
export async function installUnit(lab: LabMachine, cluster: Cluster, node: LabNode): Promise<GuestAgent> {
  buildOnce();
  await lab.run(`(systemctl stop ${AGENT_UNIT} 2>/dev/null || true) && rm -rf ${HOME} && mkdir -p ${HOME} ${STATE}`);
  await copyBundle(lab);
  await applyAgentObjects(lab, cluster, node);
  await writeKubeconfig(lab, await tokenFor(cluster, node));

  const settings = ['--node-name', node.name, '--kubeconfig', `${HOME}/kubeconfig`];
  const writable: string[] = [];
  const stop = async () => {
    await lab.run(`systemctl stop ${AGENT_UNIT} 2>/dev/null; systemctl reset-failed ${AGENT_UNIT} 2>/dev/null || true`);
  };
  return {
    async start(...flags) {
      await stop();
      const paths = writable.map((path) => `ReadWritePaths=${path}`);
      // The complete set again: the last value of a repeated property counts.
      const besides = paths.length === 0 ? [] : ['CapabilityBoundingSet=CAP_SYS_NICE CAP_DAC_OVERRIDE', ...paths];
      const properties = [...CONFINED, ...besides, `StandardOutput=truncate:${LOG}`].map((one) => `-p ${quoted(one)}`);
      const env = `--setenv=NODE_OPTIONS=${quoted(nodeOptions())}`;
      const command = ['node', `${HOME}/node-agent.cjs`, ...settings, ...flags].map(quoted).join(' ');
      await lab.run(`systemd-run --quiet --unit=${AGENT_UNIT} ${properties.join(' ')} ${env} ${command}`);
    },
    allow: (...paths) => void writable.push(...paths),
    stop,
    async log() {
      const text = await lab.run(`cat ${LOG}`);
      const whole = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
      return whole.map((line) => JSON.parse(line) as LogLine);
    },
  };
}

/** The shipped CRD, RBAC and policy. An earlier run's report and Lease would be mistaken for this one's: they are deleted. */
export async function applyAgentObjects(lab: LabMachine, cluster: Cluster, node: LabNode): Promise<void> {
  applyObjects(lab, [NETWORK, ...agentObjects()]);
  const lease = `namespaces/${NAMESPACE}/leases/${AGENT_LEASE_PREFIX}${node.name}`;
  for (const path of [`${API.apiVersion}/${API.plural}/${node.name}`, `coordination.k8s.io/v1/${lease}`])
    await cluster.client.delete(`/apis/${path}`).catch(unlessNotFound);
}

/** Namespaces, definitions, permissions, and the policies that restrict agents: others would refuse pods of the lab. */
function agentObjects(): KubernetesObject[] {
  const kinds = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount'];
  return objectsOf(render('base', ['base/node-agent/components/dpu'])).filter(
    ({ kind, apiVersion, metadata }) =>
      kinds.includes(kind) ||
      apiVersion.startsWith('rbac.') ||
      (kind.startsWith('ValidatingAdmissionPolicy') &&
        /^plumbline-(node-agent|node-agent-events|dpu|dpu-tokens)$/.test(metadata.name)),
  );
}

export function applyObjects(lab: LabMachine, objects: readonly object[]): void {
  kubectl(lab, ['apply', '--server-side', '--force-conflicts', '-f', '-'], objects);
}

export function deleteObjects(lab: LabMachine, objects: readonly object[]): void {
  kubectl(lab, ['delete', '--ignore-not-found', '-f', '-'], objects);
}

function kubectl(lab: LabMachine, args: readonly string[], objects: readonly object[]): void {
  execFileSync(pathOf('kubectl'), args, {
    input: objects.map((object) => `---\n${stringify(object)}`).join(''),
    env: { ...process.env, KUBECONFIG: lab.kubeconfig() },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

async function copyBundle(lab: LabMachine): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-lab-'));
  try {
    const tar = join(directory, 'agent.tar');
    const modules = MODULES.map((name) => `node_modules/${name}`);
    execFileSync('tar', ['-cf', tar, '-C', dist, ...BUNDLES, '-C', root, ...modules]);
    await lab.copy(tar, `${HOME}/agent.tar`);
    await lab.run(`tar -C ${HOME} -xf ${HOME}/agent.tar && rm ${HOME}/agent.tar`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function tokenFor({ client }: Cluster, { name, uid }: LabNode): Promise<string> {
  const boundObjectRef = { apiVersion: 'v1', kind: 'Node', name, uid };
  const { status } = (await client.create(`${ACCOUNT}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { boundObjectRef, expirationSeconds: TOKEN_SECONDS },
  })) as { status: { token: string } };
  return status.token;
}

const kubeconfig = z.looseObject({ users: z.array(z.looseObject({ name: z.string() })) });

async function writeKubeconfig(lab: LabMachine, token: string): Promise<void> {
  const found = kubeconfig.parse(parse(await lab.run('cat /etc/lab/kubeconfig')));
  const users = found.users.map(({ name }) => ({ name, user: { token } }));
  await lab.run(`umask 077 && cat >${HOME}/kubeconfig`, stringify({ ...found, users }));
}

function nodeOptions(): string {
  const manifest = readFileSync(join(root, 'manifests/base/node-agent/daemonset.yaml'), 'utf8');
  return /name: NODE_OPTIONS, value: (.*?) *}/.exec(manifest)?.[1] ?? '';
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
