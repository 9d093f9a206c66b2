import type { Facts } from '../facts/facts.ts';
import type { Deployment } from '../facts/objects.ts';
import type { Notebook } from './notebook.ts';
import { tagOf } from './versions.ts';

/**
 * kube-scheduler must not be newer than the API server, and may be one minor version older.
 * Source: https://kubernetes.io/releases/version-skew-policy/
 */
export function checkSchedulerVersion(notes: Notebook, deployment: Deployment, apiVersion: Facts['apiVersion']): void {
  const server = notes.value(apiVersion, 'the API server’s version');
  const image = deployment.spec.template.spec.containers.find(({ name }) => name === 'kube-scheduler')?.image ?? '';
  const [own, its] = [minorOf(tagOf(image)), minorOf(server ?? '')];
  if (own === undefined && image !== '') notes.value({ missing: 'absent' }, `the version in the image ${image}`);
  if (server === undefined || own === undefined || its === undefined) return;
  const remedy = `the component manifests/components/kubernetes-1.${its}, or the chart, which follows the cluster's version`;
  if (own > its) {
    notes.error(
      `kube-scheduler ${tagOf(image)} is newer than the API server ${server}`,
      'it may need an API that this API server does not have, and then it schedules nothing',
      remedy,
    );
  } else if (its - own > 1) {
    notes.warning(
      `kube-scheduler ${tagOf(image)} is ${its - own} minor versions older than the API server ${server}`,
      'Kubernetes supports one; an older kube-scheduler ignores newer pod fields and may place VMs wrongly',
      remedy,
    );
  } else notes.seen(`kube-scheduler ${tagOf(image)}, API server ${server}`);
}

/** The second number of `v1.36.2`. */
function minorOf(version: string): number | undefined {
  const [, minor] = /^v?1\.(\d+)\b/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
}
