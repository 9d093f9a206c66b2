import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { watchLaunchers } from '../../../node-agent/vm-pinning/launchers.ts';
import { root } from '../../support/bundles.ts';
import { tempDirectories } from '../../support/files.ts';
import { recordingLogger } from '../../support/logger.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { type InstalledAgents, installAgents } from './stage.ts';

const [OWN, OTHER] = ['worker-1', 'worker-2'];
const PODS = '/api/v1/pods';
const FILES = join(root, 'manifests/authorization');

describe('the shipped authorization configuration, on a real API server', function () {
  onControlPlane(this);
  const temp = tempDirectories();
  let installed: InstalledAgents;
  let agent: KubeClient;

  before(async () => {
    const directory = temp();
    // The shipped file but for the path of the other.
    const nowhere = join(directory, 'nowhere.kubeconfig');
    writeFileSync(nowhere, readFileSync(join(FILES, 'nowhere.kubeconfig')));
    const shipped = readFileSync(join(FILES, 'authorization-config.yaml'), 'utf8');
    const config = join(directory, 'authorization-config.yaml');
    writeFileSync(config, shipped.replace('/etc/kubernetes/plumbline/nowhere.kubeconfig', nowhere));
    installed = await installAgents([OWN, OTHER], { apiServerArgs: ['--authorization-config', config] });
    agent = await installed.agent(OWN);
  });
  after(() => installed?.stop());

  const of = (node: string) => ({ query: { fieldSelector: `spec.nodeName=${node}` } });
  const names = async (client: KubeClient, options: object = {}, path = PODS) => {
    const { items } = (await client.get(path, options)) as { items: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name).sort();
  };
  const denied = async (act: () => Promise<unknown>, what: string) => {
    const error = await act().then(
      () => assert.fail(`${what}: allowed`),
      (reason: unknown) => reason as Error,
    );
    // Denied because the authorizer could not be asked, which the API server calls a fault of its own.
    assert.ok(error instanceof KubeError && error.status === 500, `${what}: ${error.message}`);
  };

  it('lets an agent list and watch the pods of its own node', async () => {
    assert.deepEqual(await names(agent, of(OWN)), [`agent-${OWN}`]);
    const stop = new AbortController();
    const { log, lines } = recordingLogger();
    const watched = watchLaunchers({ client: agent, nodeName: OWN, log, onChange: () => {} });
    const done = watched.run(stop.signal);
    await watched.whenSynced;
    stop.abort();
    await done;
    assert.deepEqual(
      lines.filter(({ level }) => Number(level) >= 40),
      [],
    );
  });

  it('denies an agent the pods of other nodes, of all nodes, of a namespace and by other selectors', async () => {
    await denied(() => names(agent, of(OTHER)), 'another node');
    await denied(() => names(agent), 'all');
    await denied(() => names(agent, { query: { fieldSelector: `spec.nodeName!=${OWN}` } }), 'all but its own');
    await denied(() => names(agent, { query: { fieldSelector: 'status.phase=Running' } }), 'another field');
    await denied(() => names(agent, { query: { labelSelector: 'kubevirt.io=virt-launcher' } }), 'labels only');
    await denied(() => names(agent, {}, '/api/v1/namespaces/plumbline-system/pods'), 'a namespace');
    await denied(async () => agent.watch(PODS, of(OTHER)), 'a watch');
  });

  it('denies a token of the account that names no node', async () => {
    const unbound = await installed.unbound();
    await denied(() => names(unbound, of(OWN)), 'unbound');
  });

  it('leaves all other requests to the other authorizers', async () => {
    assert.equal((await names(installed.plane.client)).length, 2);
    await agent.get(`/api/v1/nodes/${OWN}`);
  });

  it('does not prevent that an agent reads a pod of another node by its name', async () => {
    await agent.get(`/api/v1/namespaces/plumbline-system/pods/agent-${OTHER}`);
  });
});
