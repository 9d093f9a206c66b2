import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { clientOf, launcher } from '../scheduler/extender-call.ts';
import { type Replica, type Stage, startStage, topologyOf } from '../scheduler/stage.ts';

const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodetopologies.plumbline.dev';
const LATER = 'v1beta1';
/** Only a report gives the CPUs for these: not the count, and not a missing report. */
const [FITS, TOO_MANY] = ['14', '20'];

interface Definition {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly [field: string]: unknown }[] };
}

describe('versions of the NodeTopology API, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(240_000);
  let stage: Stage;
  let replica: Replica;
  let client: ReturnType<typeof clientOf>;

  before(async () => {
    stage = await startStage();
    replica = await stage.startReplica();
    client = clientOf(replica);
    await stage.addNodes([{ name: 'n1', topology: topologyOf() }, { name: 'n2' }]);
  });
  after(async () => {
    client?.close();
    await stage?.stop();
  });

  const serve = async (served: Readonly<Record<string, boolean>>, stored: string) => {
    const { spec } = (await stage.client.get(DEFINITION)) as Definition;
    const [shape] = spec.versions;
    const versions = Object.entries(served).map(([name, isServed]) => {
      return { ...shape, name, served: isServed, storage: name === stored };
    });
    await stage.client.patch(DEFINITION, 'application/merge-patch+json', { spec: { versions } });
  };
  const judged = async (uid: string, node: string): Promise<readonly (string | undefined)[]> => {
    const fits = await client.filter(launcher(`${uid}-fits`, FITS), [node]);
    const tooMany = await client.filter(launcher(`${uid}-many`, TOO_MANY), [node]);
    return [fits.NodeNames?.[0], tooMany.NodeNames?.[0]];
  };

  it('another version is served and stored: reports in it count like earlier ones', async () => {
    await until('the report to count', async () => `${await judged('a', 'n1')}` === 'n1,');
    await serve({ [NODE_TOPOLOGY_API.version]: true, [LATER]: true }, LATER);
    const path = `/apis/plumbline.dev/${LATER}/nodetopologies`;
    const object = { apiVersion: `plumbline.dev/${LATER}`, kind: NODE_TOPOLOGY_API.kind, metadata: { name: 'n2' } };
    await until('the later version to be served', async () => {
      await stage.client.create(path, object);
      return true;
    });
    await stage.client.patch(`${path}/n2/status`, 'application/merge-patch+json', { status: topologyOf() });
    await until('the report to count', async () => `${await judged('b', 'n2')}` === 'n2,');
  });

  it('its own version is no longer served: the log names the missing one, and read reports still count', async () => {
    await serve({ [NODE_TOPOLOGY_API.version]: false, [LATER]: true }, LATER);
    const missing = `/apis/${NODE_TOPOLOGY_API.apiVersion}/nodetopologies`;
    await until('the log to say so', async () =>
      readFileSync(replica.logFile, 'utf8')
        .split('\n')
        .some((line) => line.includes(missing) && line.includes('keeping the cache') && /404|NotFound/.test(line)),
    );
    assert.deepEqual(await judged('c', 'n2'), [undefined, undefined], 'b holds its CPUs');
    assert.ok(await replica.isReady());
  });
});
