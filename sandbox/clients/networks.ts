import { NETWORKS_ANNOTATION, type NetworkRef, parseAttachments } from '../../model/networks/attachments.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../api-server/built-in-types.ts';
import type { KubePod } from '../objects.ts';
import type { LocalClient } from './local-client.ts';

/** The first network of a pod that has no definition. @throws ParseError if the annotation is malformed */
export function undefinedNetwork(client: LocalClient, { metadata }: KubePod): NetworkRef | undefined {
  const attachments = parseAttachments(metadata.annotations?.[NETWORKS_ANNOTATION] ?? '', metadata.namespace ?? '');
  return attachments.find(({ namespace, name }) => !client.get(NETWORK_ATTACHMENT_DEFINITIONS, namespace, name));
}
