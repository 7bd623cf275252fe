/*
 * A card behind a vfio-user socket as a PCI device
 *
 * The protocol is spoken by a library (client.h).  Here is what only QEMU can
 * do: configuration space, BAR 0, the interrupt pin, the guest's memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#include "hw/pci/pci_device.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qemu/error-report.h"
#include "qemu/event_notifier.h"
#include "qemu/main-loop.h"
#include "qemu/range.h"
#include <dlfcn.h>
#include "client.h"

#define TYPE_TIGON2_VFIO_USER "tigon2-vfio-user"
OBJECT_DECLARE_SIMPLE_TYPE(Tigon2VfioUser, TIGON2_VFIO_USER)

#define MESSAGE_BYTES 512

struct Tigon2VfioUser {
    PCIDevice parent_obj;

    /* Properties. */
    char *socket_path;
    char *library_path;
    uint32_t timeout_ms;

    MemoryRegion bar;
    MemoryListener listener;
    EventNotifier pin;
    bool pin_raised;
    bool gone;

    void *client;
    Tigon2ClientOps ops;
    Tigon2ClientHost host;
};

/* Interrupt pin ---------------------------------------------------------- */

static void pin_signalled(void *opaque)
{
    Tigon2VfioUser *s = opaque;

    if (event_notifier_test_and_clear(&s->pin) && !s->gone) {
        s->pin_raised = true;
        pci_set_irq(PCI_DEVICE(s), 1);
    }
}

/*
 * Nothing tells when the guest has handled an interrupt.  Its first access to
 * the card is taken for that: the pin goes down here, the card is asked to
 * signal again if it is still high there.  True if the card must be asked.
 */
static bool pin_handled(Tigon2VfioUser *s)
{
    if (!s->pin_raised) {
        return false;
    }
    s->pin_raised = false;
    pci_set_irq(PCI_DEVICE(s), 0);
    return true;
}

/* BAR 0 ------------------------------------------------------------------ */

static uint64_t bar_read(void *opaque, hwaddr offset, unsigned size)
{
    Tigon2VfioUser *s = opaque;
    uint8_t data[8];
    bool unmask;

    if (s->gone) {
        return UINT64_MAX;
    }
    unmask = pin_handled(s);
    if (!s->ops.bar_read(s->client, offset, data, size, unmask)) {
        return UINT64_MAX;
    }
    return ldn_le_p(data, size);
}

static void bar_write(void *opaque, hwaddr offset, uint64_t value,
                      unsigned size)
{
    Tigon2VfioUser *s = opaque;
    uint8_t data[8];
    bool unmask;

    if (s->gone) {
        return;
    }
    unmask = pin_handled(s);
    stn_le_p(data, size, value);
    s->ops.bar_write(s->client, offset, data, size, unmask);
}

/* What the card makes of parts of words is its own business. */
static const MemoryRegionOps bar_ops = {
    .read = bar_read,
    .write = bar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 4 },
};

/* Configuration space ---------------------------------------------------- */

/*
 * Registers that QEMU lives by: command, BARs, interrupt line.  The card has
 * them too and hears of every write, but the guest sees QEMU's.
 */
static bool config_is_ours(uint32_t address)
{
    return range_covers_byte(PCI_COMMAND, 2, address) ||
           range_covers_byte(PCI_BASE_ADDRESS_0, 24, address) ||
           range_covers_byte(PCI_ROM_ADDRESS, 4, address) ||
           range_covers_byte(PCI_INTERRUPT_LINE, 1, address);
}

static uint32_t config_read(PCIDevice *dev, uint32_t address, int len)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(dev);
    uint8_t data[8];

    if (s->gone || address + len > TIGON2_CONFIG_BYTES ||
        !s->ops.config_read(s->client, address, data, len)) {
        return UINT32_MAX;
    }
    for (int i = 0; i < len; i++) {
        if (config_is_ours(address + i)) {
            data[i] = dev->config[address + i];
        }
    }
    return ldn_le_p(data, len);
}

static void config_write(PCIDevice *dev, uint32_t address, uint32_t value,
                         int len)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(dev);
    uint8_t data[8];

    if (s->gone || address + len > TIGON2_CONFIG_BYTES) {
        return;
    }
    pci_default_write_config(dev, address, value, len);
    stn_le_p(data, len, value);
    s->ops.config_write(s->client, address, data, len);
}

/* The guest's memory ------------------------------------------------------ */

/*
 * What lies behind an IOMMU is in no file as the card sees it, so that goes by
 * messages, like memory that is not shared.
 */
static bool is_for_dma(const MemoryRegionSection *section)
{
    return memory_region_is_iommu(section->mr) ||
           (memory_region_is_ram(section->mr) &&
            !memory_region_is_ram_device(section->mr));
}

static void memory_add(MemoryListener *listener, MemoryRegionSection *section)
{
    Tigon2VfioUser *s = container_of(listener, Tigon2VfioUser, listener);
    RAMBlock *block = section->mr->ram_block;
    uint64_t offset = 0;
    int fd = -1;

    if (!is_for_dma(section) || s->gone) {
        return;
    }
    /* A private mapping of a file is not what others see in the file. */
    if (block && qemu_ram_is_shared(block)) {
        fd = qemu_ram_get_fd(block);
        offset = block->fd_offset + section->offset_within_region;
    }
    s->ops.map(s->client, section->offset_within_address_space,
               int128_get64(section->size), !section->readonly, fd, offset);
}

static void memory_del(MemoryListener *listener, MemoryRegionSection *section)
{
    Tigon2VfioUser *s = container_of(listener, Tigon2VfioUser, listener);

    if (is_for_dma(section) && !s->gone) {
        s->ops.unmap(s->client, section->offset_within_address_space,
                     int128_get64(section->size));
    }
}

/* Memory only: the card has no business with other devices' registers. */
static bool dma(Tigon2VfioUser *s, uint64_t address, void *data, uint32_t len,
                bool write)
{
    MemTxAttrs attrs = { .memory = 1 };

    return address_space_rw(pci_get_address_space(PCI_DEVICE(s)), address,
                            attrs, data, len, write) == MEMTX_OK;
}

static bool host_dma_read(void *opaque, uint64_t address, void *data,
                          uint32_t len)
{
    return dma(opaque, address, data, len, false);
}

static bool host_dma_write(void *opaque, uint64_t address, const void *data,
                           uint32_t len)
{
    return dma(opaque, address, (void *)data, len, true);
}

/* Life -------------------------------------------------------------------- */

static void stop_listening(Tigon2VfioUser *s)
{
    qemu_set_fd_handler(s->ops.descriptor(s->client), NULL, NULL, NULL);
    qemu_set_fd_handler(event_notifier_get_fd(&s->pin), NULL, NULL, NULL);
}

static void card_stirs(void *opaque)
{
    Tigon2VfioUser *s = opaque;

    s->ops.serve(s->client);
    if (s->gone) {
        stop_listening(s);
    }
}

static void host_gone(void *opaque, const char *message)
{
    Tigon2VfioUser *s = opaque;

    error_report("%s: %s", TYPE_TIGON2_VFIO_USER, message);
    s->gone = true;
    pin_handled(s);
}

static void host_refused(void *opaque, const char *message)
{
    warn_report("%s: %s", TYPE_TIGON2_VFIO_USER, message);
}

static bool client_open(Tigon2VfioUser *s, Tigon2ClientCard *card,
                        Error **errp)
{
    char message[MESSAGE_BYTES] = "";
    Tigon2ClientConfig config = {
        .socket = s->socket_path,
        .timeout_ms = s->timeout_ms,
    };
    Tigon2ClientOpen open_client;
    void *library;

    if (!s->socket_path || !s->library_path) {
        error_setg(errp, "%s: give socket=PATH and library=FILE",
                   TYPE_TIGON2_VFIO_USER);
        return false;
    }
    library = dlopen(s->library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        error_setg(errp, "%s: %s", TYPE_TIGON2_VFIO_USER, dlerror());
        return false;
    }
    open_client = (Tigon2ClientOpen)dlsym(library, TIGON2_CLIENT_SYMBOL);
    if (!open_client) {
        error_setg(errp, "%s: %s is not a vfio-user client",
                   TYPE_TIGON2_VFIO_USER, s->library_path);
        return false;
    }
    s->host = (Tigon2ClientHost) {
        .abi = TIGON2_CLIENT_ABI,
        .bytes = sizeof(Tigon2ClientHost),
        .device = s,
        .dma_read = host_dma_read,
        .dma_write = host_dma_write,
        .gone = host_gone,
        .refused = host_refused,
    };
    s->client = open_client(&s->host, &config, &s->ops, card, message,
                            sizeof(message));
    if (!s->client) {
        error_setg(errp, "%s: %s", TYPE_TIGON2_VFIO_USER, message);
        return false;
    }
    return true;
}

static void device_realize(PCIDevice *dev, Error **errp)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(dev);
    Tigon2ClientCard card;

    if (!client_open(s, &card, errp)) {
        return;
    }
    if (event_notifier_init(&s->pin, 0) < 0 ||
        !s->ops.connect(s->client, event_notifier_get_fd(&s->pin))) {
        error_setg(errp, "%s: no interrupt", TYPE_TIGON2_VFIO_USER);
        s->ops.close(s->client);
        return;
    }
    /*
     * The guest reads the card's; this is for QEMU's own eyes.  What it keeps
     * itself it has set up, except for the pin.
     */
    for (uint32_t i = 0; i < TIGON2_CONFIG_BYTES; i++) {
        if (!config_is_ours(i)) {
            dev->config[i] = card.config[i];
        }
    }
    memory_region_init_io(&s->bar, OBJECT(s), &bar_ops, s,
                          TYPE_TIGON2_VFIO_USER, card.bar_bytes);
    pci_register_bar(dev, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->bar);
    qemu_set_fd_handler(s->ops.descriptor(s->client), card_stirs, NULL, s);
    qemu_set_fd_handler(event_notifier_get_fd(&s->pin), pin_signalled, NULL,
                        s);
    s->listener = (MemoryListener) {
        .name = TYPE_TIGON2_VFIO_USER,
        .region_add = memory_add,
        .region_del = memory_del,
    };
    memory_listener_register(&s->listener,
                             pci_device_iommu_address_space(dev));
}

static void device_exit(PCIDevice *dev)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(dev);

    memory_listener_unregister(&s->listener);
    stop_listening(s);
    event_notifier_cleanup(&s->pin);
    s->ops.close(s->client);
}

static void device_reset_hold(Object *obj, ResetType type)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(obj);

    event_notifier_test_and_clear(&s->pin);
    pin_handled(s);
    if (!s->gone) {
        s->ops.reset(s->client);
    }
}

static char *device_get_counts(Object *obj, Error **errp)
{
    Tigon2VfioUser *s = TIGON2_VFIO_USER(obj);
    char text[MESSAGE_BYTES] = "";

    if (s->client) {
        s->ops.counts(s->client, text, sizeof(text));
    }
    return g_strdup(text);
}

static const Property device_properties[] = {
    DEFINE_PROP_STRING("socket", Tigon2VfioUser, socket_path),
    DEFINE_PROP_STRING("library", Tigon2VfioUser, library_path),
    DEFINE_PROP_UINT32("timeout-ms", Tigon2VfioUser, timeout_ms, 5000),
};

static const VMStateDescription device_vmstate = {
    .name = TYPE_TIGON2_VFIO_USER,
    .unmigratable = 1,
};

static void device_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);

    dc->desc = "Tigon II card behind a vfio-user socket";
    dc->vmsd = &device_vmstate;
    dc->hotpluggable = false;
    object_class_property_add_str(oc, "counts", device_get_counts, NULL);
    object_class_property_set_description(oc, "counts",
                                          "What went wrong or had to wait, "
                                          "counted");
    device_class_set_props(dc, device_properties);
    pc->realize = device_realize;
    pc->exit = device_exit;
    pc->config_read = config_read;
    pc->config_write = config_write;
    RESETTABLE_CLASS(oc)->phases.hold = device_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo device_types[] = {
    {
        .name = TYPE_TIGON2_VFIO_USER,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Tigon2VfioUser),
        .class_init = device_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_CONVENTIONAL_PCI_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(device_types)
