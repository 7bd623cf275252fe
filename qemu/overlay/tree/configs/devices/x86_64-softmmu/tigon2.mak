# SPDX-License-Identifier: GPL-2.0-or-later
# A PC that boots Linux, the card in it, and the card that it is measured against.
CONFIG_Q35=y
CONFIG_VTD=y
CONFIG_E1000_PCI=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_NET=y
CONFIG_VIRTIO_RNG=y
CONFIG_VIRTIO_SERIAL=y
CONFIG_TIGON2_VFIO_USER=y
