import { mkdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeClient } from '../../../kube/client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { kubeletConfiguration } from '../../../sandbox/kubelet/managers.ts';
import { writeSysfs } from '../../../sandbox/kubelet/sysfs.ts';
import { FakeKubelet } from '../../node-agent/kubelet-stand-in.ts';
import { serveJson } from '../../support/json-server.ts';

/** The node of an agent: sysfs, the kubelet's directory and sockets, and the kubelet's port. */
export type NodeStandIn = Awaited<ReturnType<typeof createNodeStandIn>>;

/** Two sockets of four cores with two threads; CPUs 0 and 8 are reserved. */
const HOST = createHost({
  cells: [
    { id: 0, cpus: '0-3,8-11' },
    { id: 1, cpus: '4-7,12-15' },
  ],
  cores: Array.from({ length: 8 }, (_, core) => `${core},${core + 8}`),
});
const RESERVED = CpuSet.parse('0,8');

/** @param client of the administrator; a kubelet's own certificate would also be allowed the two reviews */
export async function createNodeStandIn(name: string, hostRoot: string, client: KubeClient) {
  const kubelet = new FakeKubelet(join(hostRoot, 'var/lib/kubelet'));
  await writeSysfs(join(hostRoot, 'sys'), HOST);
  const configuration = kubeletConfiguration({
    version: 'v1.36.2',
    host: HOST,
    reserved: RESERVED,
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
    topologyManagerPolicy: 'best-effort',
    topologyManagerScope: 'container',
  });
  writeFileSync(join(kubelet.directory, 'config.yaml'), configuration);
  const free = HOST.online.minus(RESERVED).toString();
  kubelet.allocatable = free;
  kubelet.writeCheckpoint(HOST.online.toString());
  await kubelet.start();

  /** The HTTP status of each answer of the kubelet's port. */
  const answers: number[] = [];
  const { cert, key } = createCertificateAuthority('kubelet').issue([name]);
  mkdirSync(join(kubelet.directory, 'pki'));
  writeFileSync(join(kubelet.directory, 'pki/kubelet.crt'), cert);
  const answer = async (request: IncomingMessage) => {
    const status = await mayRead(client, name, request.headers.authorization);
    answers.push(status);
    return { status, body: status === 200 ? { kubeletconfig: parse(configuration) } : undefined };
  };
  const server = await serveJson(answer, { cert, key });
  return {
    name,
    hostRoot,
    kubelet,
    endpoint: `127.0.0.1:${server.port}`,
    answers,
    async stop() {
      await kubelet.stop();
      await server.stop();
    },
  };
}

interface Reviewed {
  readonly status: {
    readonly authenticated?: boolean;
    readonly allowed?: boolean;
    readonly user?: { readonly username: string; readonly groups: readonly string[] };
  };
}

/** As in the kubelet (Kubernetes 1.33 and newer): who is it, and may it read this node's configz? */
async function mayRead(client: KubeClient, node: string, authorization = ''): Promise<number> {
  const token = authorization.replace(/^Bearer /, '');
  const { status: who } = (await client.create('/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token },
  })) as Reviewed;
  if (who.authenticated !== true || who.user === undefined) return 401;
  const { username: user, groups } = who.user;
  const resourceAttributes = { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'configz', name: node };
  const { status } = (await client.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, resourceAttributes },
  })) as Reviewed;
  return status.allowed === true ? 200 : 403;
}
