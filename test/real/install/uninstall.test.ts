import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stringify } from 'yaml';
import { root } from '../../support/bundles.ts';
import { tempDirectories } from '../../support/files.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { DPU_WORKER, SYSTEM, WORKER } from './daemons-stage.ts';
import { type Installation, install, OVERLAY } from './installation-stage.ts';
import { kubectlEnvironment } from './rendered-fixture.ts';

const SCRIPT = join(root, 'manifests/uninstall.sh');
const NODES = '/api/v1/nodes';

interface SeenNode {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly status: {
    readonly capacity: Readonly<Record<string, string>>;
    readonly conditions: readonly { readonly type: string }[];
  };
}

describe('uninstalling, on a real API server', function () {
  onControlPlane(this);
  needs('musl');
  needs('make');
  this.timeout(600_000);
  const temp = tempDirectories();
  let installed: Installation;
  let folder: string;

  before(async () => {
    installed = await install();
    folder = temp();
    const path = (name: string) => relative(folder, join(root, 'manifests', name));
    const kustomization = { resources: [path(OVERLAY.folder)], components: OVERLAY.components.map(path) };
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization));
  });
  after(() => installed?.stop());

  const run = (program: string, ...args: string[]) => {
    const env = kubectlEnvironment(installed.plane.adminKubeconfig);
    return spawnSync(program, args, { env, encoding: 'utf8', maxBuffer: 2 ** 28 });
  };
  const traces = (): string[] => {
    const kinds = run('kubectl', 'api-resources', '--verbs=list', '-o', 'name').stdout.trim().split('\n');
    const listed = kinds.filter((kind) => !kind.startsWith('events'));
    const { stdout, stderr, status } = run('kubectl', 'get', listed.join(), '--all-namespaces', '-o', 'json');
    assert.equal(status, 0, stderr);
    interface Item {
      readonly kind: string;
      readonly metadata: { readonly namespace?: string; readonly name: string };
    }
    const { items } = JSON.parse(stdout) as { items: Item[] };
    assert.ok(items.length > 100, `${items.length} objects`);
    return items
      .filter((item) => JSON.stringify(item).includes('plumbline'))
      .map(({ kind, metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`);
  };
  const nodeOf = async (name: string) => (await installed.client.get(`${NODES}/${name}`)) as SeenNode;

  it('the daemons leave objects, labels and conditions in the cluster', async () => {
    const webhook = await installed.startWebhook();
    const pair = await installed.startPair('pair');
    const agents = [await installed.startAgent(WORKER), await installed.startAgent(DPU_WORKER)];
    const daemons = [webhook, pair.extender, ...agents];
    await Promise.all(daemons.map((daemon) => daemon.ready()));
    for (const name of [WORKER, DPU_WORKER]) {
      await until(`labels of ${name}`, async () => {
        return (await nodeOf(name)).metadata.labels['plumbline.dev/threads-per-core'] !== undefined;
      });
    }
    await until('the DPU’s condition', async () => {
      return (await nodeOf(DPU_WORKER)).status.conditions.some(({ type }) => type === 'plumbline.dev/DPUReady');
    });
    assert.ok(Object.keys((await nodeOf(WORKER)).status.capacity).some((name) => name.includes('plumbline.dev/')));
    const found = traces();
    for (const kind of ['NodeTopology', 'Lease', 'Node', 'MutatingWebhookConfiguration', 'ClusterRole', 'Secret']) {
      assert.ok(
        found.some((one) => one.startsWith(`${kind} `)),
        kind,
      );
    }
    console.log(`      ${found.length} objects`);
    // What deleting the workloads comes to, where there is a kubelet.
    await pair.scheduler.stop();
    for (const daemon of daemons) await daemon.stop();
    for (const name of [WORKER, DPU_WORKER]) {
      run('kubectl', '-n', SYSTEM, 'delete', 'pod', `agent-${name}`, '--grace-period=0', '--force');
    }
  });

  it('the script leaves nothing in the cluster', async () => {
    await installed.plane.startControllers(['namespace-controller', 'garbage-collector-controller']);
    const { status, stdout, stderr } = run(SCRIPT, '--dpu-leases', folder);
    assert.equal(status, 0, `${stdout}\n${stderr}`);
    assert.match(stdout, /nothing of Plumbline is left in the cluster/);
    assert.deepEqual(traces(), []);
  });

  it('a second run has nothing to do and succeeds', () => {
    const { status, stderr } = run(SCRIPT, folder);
    assert.equal(status, 0, stderr);
  });

  it('the script names what is left and ends with status 1', async () => {
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    await installed.plane.create({
      apiVersion,
      kind: 'ClusterRole',
      metadata: { name: 'plumbline-forgotten' },
      rules: [],
    });
    const { status, stderr } = run(SCRIPT, folder);
    assert.equal(status, 1);
    assert.match(stderr, /left in the cluster:\nclusterrole\.rbac\.authorization\.k8s\.io\/plumbline-forgotten\n/);
  });
});
