import assert from 'node:assert/strict';
import { LEASES, MAPS, PODS, podOf, TOPOLOGIES, useApiServer } from './support.ts';

const NODES = '/api/v1/nodes';
const configMap = (name: string) => ({ metadata: { name }, data: { a: '1' } });
const lease = (name: string, spec: object) => ({ metadata: { name }, spec });

describe('sandbox API server: a created object', () => {
  const { call } = useApiServer();
  it('gets uid, time, version, generation and defaults', async () => {
    const { status, body } = await call('POST', PODS, podOf('made', { limits: { cpu: 2, memory: '1Gi' } }));
    assert.equal(status, 201);
    assert.match(String(body.metadata.uid), /^[0-9a-f-]{36}$/);
    assert.match(String(body.metadata.creationTimestamp), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.match(String(body.metadata.resourceVersion), /^\d+$/);
    assert.equal(body.metadata.generation, 1);
    assert.deepEqual(body.status, { phase: 'Pending', qosClass: 'Guaranteed' });
    const [container] = (body.spec as { containers: { resources: object }[] }).containers;
    const amounts = { cpu: '2', memory: '1Gi' };
    assert.deepEqual(container?.resources, { limits: amounts, requests: amounts });
  });

  it('has no status from the client, except nodes', async () => {
    const pod = await call('POST', PODS, { ...podOf('bold'), status: { phase: 'Running' } });
    assert.equal((pod.body.status as { phase: string }).phase, 'Pending');
    const topology = await call('POST', TOPOLOGIES, { metadata: { name: 'n' }, status: { reserved: '0' } });
    assert.equal(topology.body.status, undefined);
    const status = { allocatable: { cpu: '1' } };
    assert.deepEqual((await call('POST', NODES, { metadata: { name: 'n' }, status })).body.status, status);
  });
});

const device = 'devices.kubevirt.io/kvm';
const event = { metadata: { name: 'e' }, involvedObject: { namespace: 'kube-system' } };
/** The reason of each refusal. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  404: 'NotFound',
  409: 'AlreadyExists',
  422: 'Invalid',
};
const named = (name: string, metadata: object = {}) => ({ ...podOf(name), metadata: { name, ...metadata } });
/** By default a pod is created. The message contains a text, mostly the field. */
const refusals: readonly (readonly [what: string, body: unknown, status: number, message: string, path?: string])[] = [
  ['the same name again', configMap('twice'), 409, 'configmaps "twice"', MAPS],
  ['an upper-case name', podOf('Pod'), 422, 'metadata.name: Invalid value: "Pod"'],
  ['a resourceVersion', named('v', { resourceVersion: '3' }), 400, 'resourceVersion'],
  ['another namespace than the path', named('v', { namespace: 'other' }), 400, 'namespace'],
  ['a missing namespace', named('v'), 404, 'namespaces "nowhere"', '/api/v1/namespaces/nowhere/pods'],
  ['another kind', { ...podOf('v'), kind: 'Node' }, 400, 'kind in the data (Node)'],
  ['missing containers', { ...named('v'), spec: { containers: [] } }, 422, 'spec.containers: Required value'],
  ['a request above the limit', podOf('v', { requests: { cpu: '3' }, limits: { cpu: '2' } }), 422, 'cpu limit of 2'],
  ['a device without a limit', podOf('v', { requests: { [device]: '1' } }), 422, 'Limit must be set'],
  ['an invalid quantity', podOf('v', { limits: { cpu: 'two' } }), 422, 'limits[cpu]: Invalid value: "two"'],
  ['a time with three digits', lease('l', { renewTime: '2026-01-01T00:00:00.123Z' }), 400, 'six digits', LEASES],
  ['a duration of zero', lease('l', { leaseDurationSeconds: 0 }), 422, 'leaseDurationSeconds', LEASES],
  ['an event of another namespace', event, 422, 'event.namespace', '/api/v1/namespaces/default/events'],
  ['malformed JSON', '{"a":', 400, 'the object provided is unrecognized'],
];
describe('sandbox API server: refused creations', () => {
  const { call } = useApiServer();
  before(() => call('POST', MAPS, configMap('twice')));
  for (const [what, body, status, message, path = PODS] of refusals) {
    it(`${what}: ${status}`, async () => {
      const reply = await call('POST', path, body);
      assert.deepEqual([reply.status, reply.body.reason, reply.body.code], [status, REASONS[status], status]);
      assert.ok(String(reply.body.message).includes(message), reply.body.message);
    });
  }
});

describe('sandbox API server: PUT', () => {
  const { call } = useApiServer();
  const path = `${MAPS}/put`;
  let made: Record<string, unknown> & { metadata: Record<string, unknown> };
  before(async () => {
    made = (await call('POST', MAPS, configMap('put'))).body;
  });
  it('writes a change with the next version, and nothing without a change', async () => {
    const same = (await call('PUT', path, made)).body.metadata;
    assert.equal(same.resourceVersion, made.metadata.resourceVersion);
    const { status, body } = await call('PUT', path, { ...made, data: { a: '2' } });
    assert.deepEqual([status, body.metadata.uid], [200, made.metadata.uid]);
    assert.ok(Number(body.metadata.resourceVersion) > Number(made.metadata.resourceVersion));
  });
  for (const [what, change, status] of [
    ['an old version', { resourceVersion: '1' }, 409],
    ['another uid', { uid: 'other' }, 409],
    ['another name', { name: 'else' }, 400],
  ] as const) {
    it(`with ${what}: ${status}`, async () => {
      assert.equal((await call('PUT', path, { ...made, metadata: { ...made.metadata, ...change } })).status, status);
    });
  }
  it('of a missing object: 404', async () => {
    const { status, body } = await call('PUT', `${path}x`, configMap('putx'));
    assert.deepEqual([status, body.reason, body.message], [404, 'NotFound', 'configmaps "putx" not found']);
  });
  it('cannot change the CPUs of a pod', async () => {
    const pod = (await call('POST', PODS, podOf('still', { limits: { cpu: '1' } }))).body;
    const spec = { containers: [{ name: 'main', resources: { limits: { cpu: '2' } } }] };
    const reply = await call('PUT', `${PODS}/still`, { ...pod, spec });
    assert.equal(reply.status, 422);
    assert.match(String(reply.body.message), /pod updates may not change fields other than/);
  });
});

describe('sandbox API server: /status', () => {
  const { call } = useApiServer();
  before(() => call('POST', TOPOLOGIES, { metadata: { name: 's', labels: { a: '1' } }, spec: { x: 1 } }));
  it('changes only the status', async () => {
    const sent = { metadata: { name: 's', labels: { a: '2' } }, spec: { x: 2 }, status: { reserved: '0-1' } };
    const { body } = await call('PUT', `${TOPOLOGIES}/s/status`, sent);
    assert.deepEqual([body.spec, body.status, body.metadata.labels], [{ x: 1 }, { reserved: '0-1' }, { a: '1' }]);
    assert.equal(body.metadata.generation, 1);
  });
  it('is not changed through the object', async () => {
    const sent = { metadata: { name: 's' }, spec: { x: 3 }, status: { reserved: '9' } };
    const { body } = await call('PUT', `${TOPOLOGIES}/s`, sent);
    assert.deepEqual([body.spec, body.status, body.metadata.generation], [{ x: 3 }, { reserved: '0-1' }, 2]);
  });
});

describe('sandbox API server: other requests', () => {
  const { call, exists } = useApiServer();
  it('a dry run answers as usual and stores nothing', async () => {
    const made = await call('POST', `${PODS}?dryRun=All`, podOf('dry'));
    assert.deepEqual([made.status, typeof made.body.metadata.uid], [201, 'string']);
    assert.equal(await exists(`${PODS}/dry`), false);
    assert.equal((await call('POST', `${PODS}?dryRun=Some`, podOf('dry'))).status, 400);
  });

  for (const [what, method, path, status, token] of [
    ['an unknown token', 'GET', PODS, 401, 'unknown'],
    ['an unknown collection', 'GET', '/api/v1/namespaces/default/widgets', 404],
    ['a creation below an object', 'POST', `${PODS}/x`, 405],
    ['the log of a missing pod', 'GET', `${PODS}/x/log`, 404],
    ['the status of a resource without one', 'GET', `${LEASES}/x/status`, 404],
  ] as const) {
    it(`${what}: ${status}`, async () => {
      const reply = await call(method, path, method === 'POST' ? {} : undefined, token && { token });
      assert.deepEqual([reply.status, reply.body.kind, reply.body.code], [status, 'Status', status]);
      if (status !== 405) assert.equal(reply.body.reason, REASONS[status]);
    });
  }
});
