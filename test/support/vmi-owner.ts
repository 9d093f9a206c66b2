/** The owner of a launcher: virt-controller's reference to its VMI. */
export const vmiOwner = (name: string, uid: string) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name,
  uid,
  controller: true,
});
