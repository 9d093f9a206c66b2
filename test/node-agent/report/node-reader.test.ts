import assert from 'node:assert/strict';
import { NodeReader } from '../../../node-agent/report/node-reader.ts';
import { createFakeApi } from '../api-stand-in.ts';
import { useVirtualClock } from '../support.ts';
import { runWith } from './inputs-fixture.ts';

const PATH = '/api/v1/nodes/n';
const { signal } = new AbortController();

describe('the kubelet’s version in the Node', () => {
  const api = createFakeApi('n');
  const clock = useVirtualClock();
  let reader: NodeReader;

  beforeEach(() => {
    reader = new NodeReader(api.client, 'n');
  });

  const writes = (kubeletVersion: string, heartbeat: string) =>
    api.objects.set(PATH, {
      metadata: { name: 'n', uid: 'u' },
      status: {
        nodeInfo: { kubeletVersion },
        conditions: [{ type: 'Ready', lastHeartbeatTime: `2026-01-01T00:${heartbeat}Z` }],
      },
    });
  const version = async (id: string, startedAt?: string) => {
    const started = startedAt === undefined ? undefined : Date.parse(`2026-01-01T00:${startedAt}Z`);
    return (await reader.read({ ...runWith(), id, startedAt: started }, false, signal)).kubeletVersion;
  };

  it('counts only once the running kubelet has written its status: after an upgrade within three seconds of that', async () => {
    writes('v1.35.6', '00:10');
    assert.equal(await version('a', '00:05'), 'v1.35.6');
    clock.seconds += 61;
    assert.equal(await version('a', '00:05'), 'v1.35.6');
    assert.equal(reader.dueAt, Number.POSITIVE_INFINITY, 'no heartbeat contradicts it');
    assert.equal(await version('b', '10:00.5'), undefined, 'the Node is older than the run');
    writes('v1.36.3', '10:02');
    assert.equal(await version('b', '10:00.5'), undefined, 'it is not read again at once');
    clock.seconds += 3;
    assert.equal(await version('b', '10:00.5'), 'v1.36.3');
    assert.equal(reader.dueAt, Number.POSITIVE_INFINITY);
  });

  it('is read again ten seconds later if the clock was set back under an earlier run, whose heartbeat looks newer', async () => {
    writes('v1.35.6', '50:00');
    assert.equal(await version('b', '10:00'), 'v1.35.6');
    writes('v1.36.3', '10:05');
    clock.seconds += 10;
    assert.equal(await version('b', '10:00'), 'v1.36.3');
    assert.equal(reader.dueAt, Number.POSITIVE_INFINITY);
  });

  it('counts with a clock that was set back, once the kubelet has written its status again', async () => {
    writes('v1.36.3', '00:10');
    assert.equal(await version('a', '30:00'), undefined);
    clock.seconds += 3;
    writes('v1.36.3', '00:15');
    assert.equal(await version('a', '30:00'), 'v1.36.3');
  });

  it('counts after a minute if nothing shows when it was written', async () => {
    writes('v1.36.3', '00:10');
    assert.equal(await version('a'), undefined);
    clock.seconds += 61;
    assert.equal(await version('a'), 'v1.36.3');
  });
});
