import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { ExtenderExplanation } from '../../../console/data/wire.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { startConsole } from '../../cli/console-stage.ts';
import { buildCli, plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { listen } from '../../console/support.ts';
import { root } from '../../support/bundles.ts';
import { tempDirectories } from '../../support/files.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, type KubernetesObject, onControlPlane, podOf } from '../control-plane-stage.ts';
import { objectsOf, render } from '../install/rendered-fixture.ts';
import { fullTopology, readyNode, report, type Stage, startStage, topologyOf } from '../scheduler/stage.ts';
import { createKubeletStandIn, type KubeletStandIn, kubeletFlags } from './kubelet-stand-in.ts';

interface GuideRole extends KubernetesObject {
  readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

/** The roles in docs/reference/cli-doctor.md: one for the cluster, one for plumbline-system. */
function rolesOfGuide(): GuideRole[] {
  const guide = readFileSync(join(root, 'docs/reference/cli-doctor.md'), 'utf8');
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(guide) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as GuideRole);
}

async function grantRoles(plane: ControlPlane, account: string, roles: readonly GuideRole[]): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'default' }];
  for (const role of roles) {
    const metadata = { ...role.metadata, name: account };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: account };
    const binding = { apiVersion: role.apiVersion, kind: `${role.kind}Binding`, metadata, roleRef, subjects };
    await plane.create({ ...role, metadata }, binding);
  }
}

/**
 * A new user with the roles of the guide, which take effect a moment after they were written.
 * @param forward the verbs of pods/portforward, instead of those of the guide
 * @returns the kubeconfig
 */
async function userOfGuide(plane: ControlPlane, name: string, forward?: readonly string[]): Promise<string> {
  const roles = rolesOfGuide().map((role) => ({
    ...role,
    rules: role.rules
      .map((rule) => (forward && rule.resources.includes('pods/portforward') ? { ...rule, verbs: forward } : rule))
      .filter(({ verbs }) => verbs.length > 0),
  }));
  await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'default' } });
  await grantRoles(plane, name, roles);
  const kubeconfig = await plane.accountKubeconfig(name, 'default', name);
  await until('the role to take effect', async () => (await plumbline(['top'], { kubeconfig })).status === 0);
  return kubeconfig;
}

const SYSTEM = 'plumbline-system';
const POD = 'plumbline-scheduler-7d9f8-x2x4z';
const NODE = 'full';
const MERGE = 'application/merge-patch+json';

const vmPod = (name: string, spec: object): KubernetesObject => {
  const limits = { cpu: '4', memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
  const containers = [{ name: 'compute', image: 'x', resources: { limits } }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec: { ...spec, containers } };
};
const onNode = { 'kubernetes.io/hostname': NODE };

async function addNodes(plane: ControlPlane, kubeletPort: number): Promise<void> {
  const amounts = { cpu: '64', memory: '256Gi', pods: '500', 'devices.kubevirt.io/kvm': '1k' };
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  };
  await plane.create(...[NODE, 'unreported'].map((name) => readyNode(name, amounts, { status })));
  await report(plane.client, NODE, fullTopology());
  await plane.create(podOf({ name: POD, namespace: SYSTEM }, { nodeName: NODE }));
  await plane.client.patch(`/api/v1/namespaces/${SYSTEM}/pods/${POD}/status`, MERGE, { status: { phase: 'Running' } });
}

/**
 * `explain`, `doctor` and the console have the answer of the extender in kube-scheduler's pod, over a port-forward: a real
 * kube-scheduler and the extender's real daemon, as in one pod of the Deployment, on a node with a stand-in kubelet.
 */
describe('explain, doctor and the console with the extender in kube-scheduler’s pod, through a real API server', function () {
  onControlPlane(this);
  needs('root');
  const temp = tempDirectories();
  let stage: Stage;
  let kubelet: KubeletStandIn;

  before(async () => {
    buildCli();
    const authority = createCertificateAuthority('kubelets');
    kubelet = await createKubeletStandIn(authority);
    stage = await startStage({ apiServerArgs: kubeletFlags(temp(), authority) });
    const { plane } = stage;
    // The doctor checks it.
    await plane.create(...objectsOf(render('base')).filter(({ kind }) => kind === 'MutatingWebhookConfiguration'));
    await addNodes(plane, kubelet.port);
    const { extender } = await stage.startPair(POD);
    kubelet.pods.set(`${SYSTEM}/${POD}`, new Map([[8082, extender.port]]));
    await until('the extender to be active', () => extender.isActive());
    await plane.create(
      vmPod('waits', { schedulerName: 'another' }),
      vmPod('pending', { schedulerName: 'plumbline-scheduler', nodeSelector: onNode }),
    );
  });
  after(async () => {
    await stage?.stop();
    await kubelet?.stop();
  });

  const explained = async (kubeconfig: string): Promise<Spoken> => {
    const { status, stdout, stderr } = await plumbline(['explain', 'pod', 'waits', '-o', 'json'], { kubeconfig });
    assert.equal(stderr, '');
    assert.equal(status, 0);
    return spoken(stdout);
  };

  for (const [who, kubeconfig] of [
    ['an administrator', async () => stage.plane.adminKubeconfig],
    ['a user with the roles of the guide', () => userOfGuide(stage.plane, 'user')],
  ] as const) {
    it(`${who} gets the extender’s answer for each node`, async () => {
      const { source, nodes, notes, causes } = await explained(await kubeconfig());
      assert.deepEqual(notes, []);
      assert.equal(source, 'extender');
      const found = nodes.map(({ text, nodes: names }) => `${names}: ${text}`).sort();
      assert.deepEqual(found, ['full: too few free whole cores', 'unreported: could run it']);
      assert.match(causes.join(), /its scheduler is another, which does not call the extender/);
    });
  }

  it('kube-apiserver connects to the pod’s kubelet over a WebSocket with the subprotocol for channels', () => {
    const [{ url, protocols } = { url: '', protocols: '' }] = kubelet.asked;
    assert.equal(url, `/portForward/${SYSTEM}/${POD}?port=8082`);
    assert.match(protocols, /\bv4\.channel\.k8s\.io\b/);
  });

  for (const verbs of [[], ['get']] as const) {
    it(`with the verbs [${verbs}] of pods/portforward, one line names the missing permission`, async () => {
      const { source, notes } = await explained(await userOfGuide(stage.plane, `with-${verbs.length}`, verbs));
      assert.equal(source, 'reports');
      assert.match(notes[0] ?? '', /because you may not reach the extender \(pods\/portforward in plumbline-system\)$/);
    });
  }

  it('top, simulate and doctor work with the roles of the guide; doctor marks what it may not read', async () => {
    const kubeconfig = await userOfGuide(stage.plane, 'reader');
    assert.equal((await plumbline(['top', '-o', 'name'], { kubeconfig })).stdout, 'node/full\n');
    const { stdout: room } = await plumbline(['simulate', '--vm', '4c2t'], { kubeconfig });
    assert.match(room, /no room for one more 4c2t/);
    const { stdout, stderr } = await plumbline(['doctor'], { kubeconfig });
    assert.equal(stderr, '');
    assert.match(stdout, /certificates: not checked: the certificate of plumbline-webhook \(you may not read them\)/);
  });

  it('names a missing permission in one line, and ends with status 3', async () => {
    const { plane } = stage;
    await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'none', namespace: 'default' } });
    const kubeconfig = await plane.accountKubeconfig('none', 'default', 'none');
    for (const args of [['top'], ['explain', 'pod', 'waits'], ['simulate', '--vm', '4c2t'], ['doctor']]) {
      const { status, stderr } = await plumbline(args, { kubeconfig });
      assert.equal(status, 3, args.join(' '));
      assert.match(
        stderr,
        /^plumbline: .*not allowed: .*cannot (list|get) resource "\w+".*cli-doctor.md \(context .*\)\n$/,
      );
    }
  });

  const ownersOf = (data: string) =>
    new RegExp(`\\["n","${NODE}",\\{.*?"owners":\\[(.*?)\\],"inFlight"`).exec(data)?.[1];

  it('the console shows changes of nodes, the leader and a waiting pod, and the extender’s answer over a port-forward', async () => {
    const { url, end, stderr } = await startConsole(await userOfGuide(stage.plane, 'viewer'));
    const page = await listen(`${url}events`);
    await page.until(({ event }) => event === 'ready');
    await page.until(({ data }) => /"leader":"plumbline-scheduler-/.test(data));
    await page.until(({ data }) => ownersOf(data)?.includes('["full","compute","1-7,9-15",0]') === true);
    await page.until(({ data }) => /"name":"pending".*"unscheduled":"0\/2 nodes are available: /.test(data));
    const answer = await fetch(`${url}explain?pod=default/pending`);
    assert.equal(answer.status, 200, await answer.clone().text());
    const { nodes, groups, lastCall } = (await answer.json()) as ExtenderExplanation;
    assert.deepEqual(
      nodes.map(([node, group]) => [node, groups[group]?.fits]),
      [
        [NODE, false],
        ['unreported', true],
      ],
    );
    assert.equal(lastCall?.passed, 0);
    await report(stage.plane.client, NODE, topologyOf({ assignments: [] }));
    await page.until(({ data }) => ownersOf(data) === '');
    assert.equal(await end('SIGINT'), 0);
    assert.equal(stderr(), '');
  });
});
