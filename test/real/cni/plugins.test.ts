import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gateConflist } from '../../../model/cni/conflist.ts';
import { createGateFixture, type GateFixture } from '../../native/gate-stage.ts';
import { createNetwork, type Network } from '../../native/network-stage.ts';
import { DEAD, type GateAgent, READY, startGateAgent } from '../../node-agent/gate/agent-stand-in.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/parts.ts';

/** The versions of Debian's plugins, which refuse 1.1.0 themselves. */
const VERSIONS = ['0.3.1', '0.4.0', '1.0.0'];
const ADDRESS = /^eth0 10\.88\.\d+\.\d+\/16$/;

describe('the gate in front of real plugins, in network namespaces', function () {
  this.timeout(300_000);
  needs('musl');
  needs('make');
  needs('cniPlugins');
  needs('netns');
  let gate: GateFixture;
  let agent: GateAgent;
  let network: Network;
  before(async () => {
    gate = createGateFixture();
    agent = await startGateAgent(gate.socket);
    network = createNetwork(gate);
  });
  after(async () => {
    network?.remove();
    await agent?.stop();
    gate?.remove();
  });
  beforeEach(() => {
    agent.dpu = READY;
  });

  const single = (cniVersion: string, more: object) => ({ cniVersion, name: 'pods', ...more });
  const wrapped = (cniVersion: string, delegate: object) => single(cniVersion, { type: 'plumbline-gate', delegate });
  const isClean = () => assert.deepEqual([network.podAddresses(), network.hostLinks(), network.leases()], [[], [], []]);

  for (const version of VERSIONS) {
    it(`${version}: an ADD that fails half way leaves nothing behind, and its error is passed on`, async () => {
      // The address is allocated before the plugin finds that the pod already has an eth0.
      const conf = wrapped(version, network.bridge());
      const first = await network.plugin('ADD', conf, 'first');
      assert.equal(first.code, 0, first.stdout);
      const second = await network.plugin('ADD', conf, 'second');
      assert.equal(second.code, 1);
      assert.match(String(second.json()['msg']), /eth0.*already exists/);
      assert.equal((await network.plugin('DEL', conf, 'first')).code, 0);
      isClean();
    });
  }

  it('if the DPU dies during an ADD, the created parts are removed again', async () => {
    // It does its work and then does not return.
    const real = join(gate.binDir, 'bridge');
    const slow = gate.delegate('slow', `printf '%s' "$conf" | ${real}; [ "$CNI_COMMAND" = DEL ] || exec sleep 60`);
    const adding = network.plugin('ADD', wrapped('1.0.0', { ...network.bridge(), type: 'slow' }));
    await eventually(() => network.podAddresses().length === 1, 'the pod has its address');
    agent.dpu = DEAD;
    agent.recheck();
    const { code, json } = await adding;
    assert.deepEqual([code, json()['code']], [1, 11]);
    assert.deepEqual(
      slow.calls().map(({ verb }) => verb),
      ['ADD', 'DEL'],
    );
    isClean();
  });

  describe('called by libcni', () => {
    needs('libcni');
    const generate = (primary: object) => {
      const made = gateConflist('10-pods', JSON.stringify(primary));
      const file = join(gate.directory, made.name);
      writeFileSync(file, made.text);
      return file;
    };
    const list = (cniVersion: string) => ({
      cniVersion,
      name: 'pods',
      plugins: [network.bridge(), { type: 'tuning', sysctl: { 'net.ipv4.conf.eth0.arp_notify': '1' } }],
    });
    const forms: [string, (version: string) => string][] = [
      ['around the first of a list', (version) => generate(list(version))],
      ['around a single plugin', (version) => generate({ cniVersion: version, name: 'pods', ...network.bridge() })],
    ];
    for (const [form, fileFor] of forms) {
      for (const version of VERSIONS) {
        it(`${form}, ${version}: a sandbox is created, checked, removed and created again`, async () => {
          const file = fileFor(version);
          for (const sandbox of ['one', 'two']) {
            const added = await network.libcni('add', file, sandbox);
            assert.equal(added.code, 0, added.stderr);
            assert.match(network.podAddresses().join(), ADDRESS);
            if (version !== '0.3.1') {
              const checked = await network.libcni('check', file, sandbox);
              assert.equal(checked.code, 0, checked.stderr);
            }
            for (let i = 0; i < 2; i++) assert.equal((await network.libcni('del', file, sandbox)).code, 0);
            isClean();
          }
        });
      }
    }

    it('a dead DPU gives the runtime code 11, and the clean-up succeeds', async () => {
      agent.dpu = DEAD;
      const file = generate(list('1.0.0'));
      const added = await network.libcni('add', file);
      assert.equal(added.code, 1);
      assert.match(added.stderr, /"code":11,"msg":"DPU Not Ready: its lease ovn-dpu-a/);
      assert.equal((await network.libcni('del', file)).code, 0);
      isClean();
      agent.dpu = READY;
      assert.equal((await network.libcni('add', file)).code, 0);
      assert.equal((await network.libcni('del', file)).code, 0);
      isClean();
    });
  });
});
