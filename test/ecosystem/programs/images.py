"""kornia: filters, colours, geometry, augmentations, losses and features of images."""

import kornia
import kornia.augmentation as K
import torch

torch.manual_seed(0)
x = torch.rand(1, 3, 32, 32)


def show(name: str, y: torch.Tensor) -> None:
    print(name, tuple(y.shape), f"{y.double().abs().mean().item():.4f}")


show("blur", kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("edges", kornia.filters.sobel(x))
show("canny", kornia.filters.canny(x)[0])
show("median", kornia.filters.median_blur(x, (3, 3)))
show("lab", kornia.color.rgb_to_lab(x))
show("hsv", kornia.color.rgb_to_hsv(x))
show("rotated", kornia.geometry.transform.rotate(x, torch.tensor([30.0])))
show("pyramid", kornia.geometry.transform.pyrdown(x))
points = torch.rand(1, 8, 2)
moved = points * 1.5 + 0.1
show("homography", kornia.geometry.homography.find_homography_dlt(points, moved))
show("quaternion", kornia.geometry.quaternion_to_rotation_matrix(torch.rand(2, 4)))
show("corners", kornia.feature.harris_response(x))
show("patches", kornia.feature.SIFTDescriptor(32)(torch.rand(2, 1, 32, 32)))
show("dilated", kornia.morphology.dilation(x, torch.ones(3, 3)))
show("equalized", kornia.enhance.equalize_clahe(x))
for augmentation in (
    K.RandomAffine(20.0, p=1.0),
    K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.RandomErasing(p=1.0),
    K.RandomPerspective(p=1.0),
    K.RandomResizedCrop((16, 16)),
    K.RandomElasticTransform(p=1.0),
):
    torch.manual_seed(3)
    show(type(augmentation).__name__, augmentation(x))
scores = torch.randn(2, 4, 6, 6, requires_grad=True)
loss = kornia.losses.dice_loss(scores, torch.randint(4, (2, 6, 6)))
loss.backward()
show("dice", loss.detach().reshape(1))
show("gradient", scores.grad)
