import assert from 'node:assert/strict';
import { type Command, commandText } from '../../diagnosis/remedies.ts';
import { VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { useCluster } from '../cli/cluster-fixture.ts';
import { needs } from '../support/parts.ts';
import { commandsOfTable, shell } from './remedy-commands-fixture.ts';
import { NODE, NODE_2 } from './state-table-fixture.ts';

/** KubeVirt's command is missing here: the forms that are used, from its help text. */
const VIRTCTL: readonly RegExp[] = [
  /^virtctl (?:start|stop|restart|migrate|migrate-cancel) [-\w.]+ -n [-\w]+$/,
  /^virtctl unpause (?:vm|vmi) [-\w.]+ -n [-\w]+$/,
];

/** The sandbox does not enforce these and does not have them; test/real/install/fixes.test.ts runs them. */
const NOT_IN_SANDBOX = /resourcequota|limitrange|poddisruptionbudget/;

describe('suggested commands', function () {
  this.timeout(300_000);
  let commands: readonly Command[];
  const cluster = useCluster(async (made) => {
    commands = await commandsOfTable();
    const { client } = made.sandbox;
    for (const name of ['tenants', 'kubevirt', 'plumbline-system', 'ovn-kubernetes', 'kube-system']) {
      await made.namespace(name).catch(() => undefined);
    }
    await made.node(NODE, { unschedulable: true });
    await client.create(VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'fw', namespace: 'tenants' },
      spec: { runStrategy: 'Halted', template: { spec: { domain: {} } } },
    } as never);
    for (const node of [NODE, NODE_2])
      await made.lease('ovn-kubernetes', `ovn-dpu-${node}`, { holderIdentity: 'x', leaseDurationSeconds: 40 });
  });

  const of = (program: Command['program']) => commands.filter((command) => command.program === program);

  it('plumbline: each runs and finds its objects', async () => {
    const own = of('plumbline');
    assert.ok(own.length >= 5);
    for (const { args } of own) {
      // The doctor watches the Leases of DPUs for 25 s by default.
      const quick = args.includes('dpu') ? [...args, '--watch', '1'] : args;
      const { status, stderr } = await cluster.run(...quick);
      // It asks the node's agent, which this cluster does not have.
      if (args[0] === 'vm') {
        assert.match(stderr, /no agent runs on node/);
        continue;
      }
      assert.ok(status <= 1, `plumbline ${args.join(' ')}: ${status} ${stderr}`);
      assert.equal(stderr, '');
    }
  });

  it('virtctl: each has a valid form', () => {
    const texts = of('virtctl').map(commandText);
    assert.ok(texts.length >= 3);
    assert.deepEqual(
      texts.filter((text) => !VIRTCTL.some((form) => form.test(text))),
      [],
    );
  });

  describe('kubectl', () => {
    needs('kubectl');

    it('each runs in a shell as printed', async () => {
      const texts = of('kubectl')
        .map(commandText)
        .filter((text) => !NOT_IN_SANDBOX.test(text));
      assert.ok(texts.length >= 5);
      const failed: string[] = [];
      for (const text of texts) {
        const { status, output } = await shell(text, cluster.kubeconfig);
        if (status !== 0) failed.push(`${text}: ${output}`);
      }
      assert.deepEqual(failed, []);
    });
  });
});
