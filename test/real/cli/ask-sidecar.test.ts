import assert from 'node:assert/strict';
import { buildCli, plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { freePort } from '../processes.ts';
import { grantRoles, rolesOfGuide } from './role-of-guide.ts';
import { MERGE, NODE, POD, type SidecarStage, SYSTEM, startSidecarStage } from './sidecar-stage.ts';

/** Another scheduler's, so that it stays pending. */
const podOf = (name: string, schedulerName: string): KubernetesObject => {
  const amounts = { cpu: '4', memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
  const containers = [{ name: 'compute', image: 'x', resources: { limits: amounts } }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { schedulerName, containers },
  };
};

/** `explain` and `doctor` have the answer of the extender in kube-scheduler's pod, over a port-forward. */
describe('explain and doctor with the extender in kube-scheduler’s pod, through a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  needs('root');
  this.timeout(300_000);
  let stage: SidecarStage;

  before(async () => {
    buildCli();
    stage = await startSidecarStage();
    await stage.plane.create(podOf('waits', 'another'));
    const path = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/plumbline-scheduler/status`;
    const status = { replicas: 2, readyReplicas: 2 };
    await stage.plane.client.patch(path, MERGE, { status });
  });
  after(() => stage?.stop());

  /** @param verbs of pods/portforward, instead of those of the guide */
  const user = async (name: string, verbs?: readonly string[]): Promise<string> => {
    const roles = rolesOfGuide().map((role) => ({
      ...role,
      rules: role.rules
        .map((rule) => (verbs !== undefined && rule.resources.includes('pods/portforward') ? { ...rule, verbs } : rule))
        .filter((rule) => rule.verbs.length > 0),
    }));
    await stage.plane.create({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'default' },
    });
    await grantRoles(stage.plane, name, roles);
    const kubeconfig = await stage.plane.kubeconfig(name, await stage.plane.serviceAccountToken('default', name));
    await until('the role to take effect', async () => (await plumbline(['top'], { kubeconfig })).status === 0);
    return kubeconfig;
  };
  const explained = async (kubeconfig = stage.plane.adminKubeconfig, pod = 'waits'): Promise<Spoken> => {
    const { status, stdout, stderr } = await plumbline(['explain', 'pod', pod, '-o', 'json'], { kubeconfig });
    assert.equal(stderr, '');
    assert.equal(status, 0);
    return spoken(stdout);
  };
  const doctor = () => plumbline(['doctor', 'extender'], { kubeconfig: stage.plane.adminKubeconfig });

  for (const [who, kubeconfig] of [
    ['an administrator', async () => stage.plane.adminKubeconfig],
    ['a user with the roles of the guide', () => user('user')],
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
    const [{ url, protocols } = { url: '', protocols: '' }] = stage.kubelet.asked;
    assert.equal(url, `/portForward/${SYSTEM}/${POD}?port=8082`);
    assert.match(protocols, /\bv4\.channel\.k8s\.io\b/);
  });

  for (const verbs of [[], ['get']] as const) {
    it(`with the verbs [${verbs}] of pods/portforward, one line names the missing permission`, async () => {
      const { source, notes } = await explained(await user(`with-${verbs.length}`, verbs));
      assert.equal(source, 'reports');
      assert.match(notes[0] ?? '', /because you may not reach the extender \(pods\/portforward in plumbline-system\)$/);
    });
  }

  it('doctor shows the leader’s pod, its extender and the versions', async () => {
    const { status, stdout } = await doctor();
    const text = stdout.replaceAll(/\s+/g, ' ');
    assert.match(
      text,
      /^✔ extender: 2 replicas of plumbline-scheduler ready; pod plumbline-scheduler-\S+ is the leader; /,
    );
    assert.match(
      text,
      / the extender answers; kube-scheduler v1\.\S+, API server v1\.\S+; the webhook assigns launchers to /,
    );
    assert.match(text, /no problems found $/);
    assert.equal(status, 0);
  });

  it('version names the API server and that KubeVirt is not known', async () => {
    const { status, stdout } = await plumbline(['version', '-o', 'json'], { kubeconfig: stage.plane.adminKubeconfig });
    assert.equal(status, 0);
    const { cluster } = JSON.parse(stdout) as { cluster: { kubernetes: string; kubevirt: unknown } };
    assert.match(cluster.kubernetes, /^v1\.\d+\.\d+/);
    assert.equal(cluster.kubevirt, null);
  });

  it('status says that no VM is waiting, and that there is no KubeVirt', async () => {
    const { status, stdout, stderr } = await plumbline(['status', '-A'], { kubeconfig: stage.plane.adminKubeconfig });
    assert.equal(stderr, '');
    assert.match(
      stdout,
      /^no VM is waiting in any namespace\n\(VMs are not readable \(no permission, or KubeVirt is not/,
    );
    assert.equal(status, 0);
  });

  it('bug-report lists its files, without Secrets and tokens', async () => {
    const args = ['bug-report', '--dry-run'];
    const { status, stdout } = await plumbline(args, { kubeconfig: stage.plane.adminKubeconfig });
    assert.equal(status, 0);
    for (const name of ['versions', 'doctor', 'reports', 'nodes', 'events', 'pods'])
      assert.match(stdout, new RegExp(`^${name}\\.json `, 'm'));
    assert.doesNotMatch(stdout, /secret/i);
  });

  it('explain and doctor report that nothing listens in the pod', async () => {
    stage.listening(false);
    const { source, notes } = await explained();
    assert.equal(source, 'reports');
    assert.match(
      notes[0] ?? '',
      /the extender in pod plumbline-scheduler-\S+ did not answer \(.*connection refused\)$/,
    );
    const { status, stdout } = await doctor();
    assert.equal(status, 1);
    assert.match(stdout, /✘ extender: the extender in pod plumbline-scheduler-\S+ does not answer: (?!the extender)/);
    stage.listening(true);
  });

  it('explain reports that the pod is gone when the kubelet does not know it', async () => {
    stage.kubelet.pods.clear();
    const { source, notes } = await explained();
    assert.equal(source, 'reports');
    assert.match(notes[0] ?? '', /the pod plumbline-scheduler-\S+, which leads plumbline-scheduler, is gone$/);
    stage.listening(true);
  });

  it('explain reports a kubelet that the API server cannot reach', async () => {
    const moveTo = (Port: number) =>
      stage.plane.client.patch(`/api/v1/nodes/${NODE}/status`, MERGE, {
        status: { daemonEndpoints: { kubeletEndpoint: { Port } } },
      });
    await moveTo(await freePort());
    const { source, notes } = await explained();
    assert.equal(source, 'reports');
    assert.match(
      notes[0] ?? '',
      /did not answer \(5\d\d: check that the API server reaches the kubelet of that node\)$/,
    );
    await moveTo(stage.kubelet.port);
    assert.equal((await explained()).source, 'extender');
  });

  it('explain and doctor report that no kube-scheduler is the leader', async () => {
    await stage.scheduler.stop();
    await stage.plane.create(podOf('ours', 'plumbline-scheduler'));
    const { why, help, notes } = await explained(undefined, 'ours');
    assert.equal(why, 'no scheduler tries it: no replica of plumbline-scheduler is the leader');
    assert.match(help.join(), /bring plumbline-scheduler back/);
    assert.match(notes[0] ?? '', /because no replica of plumbline-scheduler is the leader$/);
    assert.match(
      (await doctor()).stdout,
      /✘ extender: no replica of plumbline-scheduler is the leader\n {4}impact: new VMs/,
    );
  });
});
