import { BinaryReader } from '@bufbuild/protobuf/wire';
import {
  AllocatableResourcesResponse,
  ContainerDevices,
  ContainerResources,
  type ListPodResourcesResponse,
  PodResources,
} from './gen/pod-resources.ts';

/** Whether to decode the devices of a resource, by the resource's name. */
export type DeviceFilter = (resourceName: string) => boolean;

/**
 * Decodes the response of List: names of pods and containers, their CPUs, and the wanted devices. It skips the rest
 * without decoding: a response may contain 16 MiB of other vendors' devices, which need several times that as objects.
 */
export function decodeLeanList(bytes: Uint8Array, wanted: DeviceFilter): ListPodResourcesResponse {
  const podResources: PodResources[] = [];
  eachField(bytes, (field, reader) => {
    if (field !== 1) return false;
    podResources.push(leanPod(reader.bytes(), wanted));
    return true;
  });
  return { podResources };
}

/** Decodes the response of GetAllocatableResources: the CPUs and the wanted devices. */
export function decodeLeanAllocatable(bytes: Uint8Array, wanted: DeviceFilter): AllocatableResourcesResponse {
  const answer = AllocatableResourcesResponse.create();
  eachField(bytes, (field, reader, wireType) => {
    if (field === 1) keepWanted(reader.bytes(), answer.devices, wanted);
    else if (field === 2) readIds(reader, wireType, answer.cpuIds);
    else return false;
    return true;
  });
  return answer;
}

function leanPod(bytes: Uint8Array, wanted: DeviceFilter): PodResources {
  const pod = PodResources.create();
  eachField(bytes, (field, reader) => {
    if (field === 1) pod.name = reader.string();
    else if (field === 2) pod.namespace = reader.string();
    else if (field === 3) pod.containers.push(leanContainer(reader.bytes(), wanted));
    else return false;
    return true;
  });
  return pod;
}

function leanContainer(bytes: Uint8Array, wanted: DeviceFilter): ContainerResources {
  const container = ContainerResources.create();
  eachField(bytes, (field, reader, wireType) => {
    if (field === 1) container.name = reader.string();
    else if (field === 2) keepWanted(reader.bytes(), container.devices, wanted);
    else if (field === 3) readIds(reader, wireType, container.cpuIds);
    else return false;
    return true;
  });
  return container;
}

function keepWanted(bytes: Uint8Array, into: ContainerDevices[], wanted: DeviceFilter): void {
  let name = '';
  eachField(bytes, (field, reader) => {
    if (field !== 1) return false;
    name = reader.string();
    return true;
  });
  if (wanted(name)) into.push(ContainerDevices.decode(bytes));
}

const PACKED = 2;

/** A repeated int64, packed or not. */
function readIds(reader: BinaryReader, wireType: number, into: number[]): void {
  const end = wireType === PACKED ? reader.uint32() + reader.pos : reader.pos + 1;
  while (reader.pos < end) into.push(Number(reader.int64()));
}

/**
 * Calls `visit` with each field's number. If `visit` returns false, it has not read the field, which is then skipped.
 */
function eachField(bytes: Uint8Array, visit: (field: number, reader: BinaryReader, wireType: number) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (!visit(field, reader, wireType)) reader.skip(wireType, field);
  }
}
