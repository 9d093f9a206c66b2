import assert from 'node:assert/strict';
import { createLastMapFile } from '../../../node-agent/networks/map-source.ts';
import { createNetworks, type NetworksDeps } from '../../../node-agent/networks/networks.ts';
import { eventually, twoCells as host, recordingLogger, replaceFile, tempDirectories, writeTree } from '../support.ts';

describe('the duty that follows networks', () => {
  const temp = tempDirectories();
  let stop: AbortController;
  let done: Promise<void>;
  beforeEach(() => {
    stop = new AbortController();
  });
  const end = async () => {
    stop.abort();
    await done;
  };
  afterEach(end);

  /** Without Open vSwitch; its last good map is kept below the root. */
  const follow = (root: string, more: Partial<NetworksDeps>) => {
    const networks = createNetworks({
      sysfsRoot: root,
      host: async () => host,
      ovsRundir: undefined,
      networkMap: undefined,
      lastMap: createLastMapFile(`${root}/state/network-map.json`, () => undefined),
      labels: async () => ({}),
      log: recordingLogger().log,
      ...more,
    });
    const changes: (string | undefined)[] = [];
    const leave = networks.subscribe(() => changes.push(networks.view().networks.tunnel?.toString()));
    done = networks.run(stop.signal);
    return { networks, changes, leave };
  };

  it('follows the map and the node labels without a switch; a typo keeps the last good map, even after a restart', async () => {
    const root = temp();
    const file = `${root}/map.yaml`;
    writeTree(root, { 'map.yaml': '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [1]}}' });
    let reached = false;
    const labels = async () => {
      if (!reached) throw new Error('no API server yet');
      return { rack: 'a' };
    };
    const { networks, changes } = follow(root, { networkMap: file, labels });
    await eventually(() => networks.view().problems[0]?.reason === 'NodeUnknown', 'it waits for labels');
    reached = true;
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the labels came');
    replaceFile(file, 'tunnel: {numaNodes: [0]}');
    await eventually(() => networks.view().networks.tunnel?.toString() === '0', 'the new map');
    replaceFile(file, 'tunnel: {numaNodes: [7]}');
    await eventually(() => networks.view().mapFault !== undefined, 'a bad map');
    assert.match(networks.view().mapFault ?? '', /NUMA node 7 of the tunnel is not on this host, which has 0-1/);
    assert.deepEqual(changes, [undefined, '1', '0', '0']);
    await end();

    stop = new AbortController();
    const restarted = follow(root, { networkMap: file }).networks;
    await eventually(() => restarted.isComplete, 'the agent is restarted with the bad map');
    assert.equal(restarted.view().networks.tunnel?.toString(), '0');
    assert.match(restarted.view().mapFault ?? '', /the last good map stays in use/);
  });
});
