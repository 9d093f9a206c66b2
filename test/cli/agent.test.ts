import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type AskAgent, agentOf } from '../../cli/agent/ask.ts';
import { fetchOvsStatus } from '../../cli/agent/ovs-status.ts';
import type { OpenPort } from '../../cli/extender/port-forward.ts';
import { usingCluster } from '../../cli/support/cluster.ts';
import { EXIT } from '../../cli/support/exit-status.ts';
import { KubeError } from '../../kube/client.ts';
import { createLogger } from '../../runtime/log.ts';
import { Registry } from '../../runtime/metrics.ts';
import { createProbeServer } from '../../runtime/probes.ts';
import { useCluster } from './cluster-fixture.ts';

const OVS = { enabled: true, enablerFile: '/etc/x', desired: '0-3', why: [], problems: [], sources: [], processes: [] };
const ENDING = { phase: 'Succeeded' };
const RUNNING = { phase: 'Running' };

describe('the agent of a node, reached through the API server', function () {
  this.timeout(120_000);
  const cluster = useCluster((made) => made.namespace('plumbline-system'));
  let server: ReturnType<typeof createProbeServer>;
  const agent = (name: string, node: string, status: Readonly<Record<string, unknown>>) =>
    cluster.pod(name, {
      namespace: 'plumbline-system',
      node,
      labels: { 'app.kubernetes.io/name': 'plumbline-node-agent' },
      status,
    });
  before(async () => {
    await agent('agent-old', 'worker-1', ENDING);
    await agent('agent-1', 'worker-1', RUNNING);
    await agent('agent-2', 'worker-2', RUNNING);
    await cluster.pod('other', { namespace: 'plumbline-system', node: 'worker-3', status: RUNNING });
    server = createProbeServer({
      host: '127.0.0.1',
      port: 0,
      notReady: () => undefined,
      registry: new Registry(),
      pages: { '/ovs': () => OVS },
      log: createLogger('test', 'silent'),
    });
    await server.start();
  });
  after(() => server?.stop(0));

  /** Replaces the API server and the kubelet, which the tests of the port-forward cover. */
  const forwarded: OpenPort = (_, target, signal) => {
    assert.equal(signal.aborted, false);
    targets.push(`${target.namespace}/${target.pod}:${target.port}`);
    return Promise.resolve(connect(server.port, '127.0.0.1'));
  };
  const targets: string[] = [];
  const ask =
    (node: string, open: OpenPort = forwarded): AskAgent =>
    (path) =>
      usingCluster({ kubeconfig: cluster.kubeconfig }, (access) => agentOf(access, node, 8082, open)(path));

  it('is the running pod on that node, and gives the same answer as on the node', async () => {
    assert.deepEqual(await fetchOvsStatus(ask('worker-1')), OVS);
    assert.deepEqual(await fetchOvsStatus(ask('worker-2')), OVS);
    assert.deepEqual(targets, ['plumbline-system/agent-1:8082', 'plumbline-system/agent-2:8082']);
  });

  it('is reported as not found for a node without an agent and for an unknown node', async () => {
    for (const node of ['worker-3', 'none']) {
      await assert.rejects(fetchOvsStatus(ask(node)), (error: { message: string; status: number }) => {
        assert.match(error.message, new RegExp(`^no agent runs on node ${node} `));
        return error.status === EXIT.notFound;
      });
    }
  });

  for (const [what, error, message] of [
    [
      'denied permission',
      new KubeError(403, 'Forbidden', 'no'),
      /not allowed to reach the agent \(pods\/portforward in plumbline-system\)/,
    ],
    [
      'a kubelet that is down',
      new KubeError(502, 'BadGateway', 'no'),
      /^agent-1:8082\/ovs: 502: check that the API server reaches the kubelet/,
    ],
    ['a lost connection', new Error('the connection was closed'), /^agent-1:8082\/ovs: the connection was closed$/],
  ] as const) {
    it(`${what}: one line, status 3`, async () => {
      const refused = fetchOvsStatus(ask('worker-1', () => Promise.reject(error)));
      await assert.rejects(refused, (found: { message: string; status: number }) => {
        assert.match(found.message, message);
        return found.status === EXIT.unreachable;
      });
    });
  }

  it('is selected by the node’s name, which is completed; an invalid agent address is refused', async () => {
    const none = await cluster.run('ovs', 'status', 'worker-3');
    assert.deepEqual([none.status, none.stdout], [4, '']);
    assert.match(none.stderr, /^plumbline: no agent runs on node worker-3 /);
    await cluster.node('worker-1');
    const completed = await cluster.run('__complete', 'vm', 'status', 'work');
    assert.equal(completed.stdout, 'worker-1\n');
    const wrong = await cluster.run('vm', 'status', '--agent', 'here');
    assert.deepEqual(
      [wrong.status, wrong.stderr],
      [2, "plumbline: --agent 'here': expected a URL such as http://127.0.0.1:8082; see plumbline vm status --help\n"],
    );
  });
});
